/** The canonical form keeps the meaning of a file, is unique, and reads the same in every YAML parser. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { load } from 'js-yaml';
import { parse } from 'yaml';
import { pathOf } from '../../../lib/metadata/paths.ts';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import type { YamlValue } from '../../../lib/yaml/parse.ts';
import { KINDS } from '../../../services/metadata/kinds/registry.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { bodyOf, type Schema } from '../../support/files-of-kinds.ts';

const RUNS = Number(process.env['CANONICAL_RUNS'] ?? 60);

type Files = Record<string, string>;

const read = async (files: Files) => {
  const { drafts, problems, manifestHash } = await readProject(files, null);
  return { problems, manifestHash, drafts: [...drafts.values()] };
};

/** JSON is YAML that any program can write, with escapes for what YAML does not print. */
const json = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(
    /[\u007f-\u0084\u0086-\u009f\ufffe\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The same value with the keys that its schema names in another order; JSON of an author's own keeps its order. */
function turned({ properties, patternProperties, items }: Schema, value: unknown): unknown {
  if (Array.isArray(value)) return items ? value.map((item) => turned(items, item)) : value;
  if (typeof value !== 'object' || value === null) return value;
  const [member] = Object.values(patternProperties ?? {});
  const entries = Object.entries(value).map(([key, item]) => [key, turned(properties?.[key] ?? member ?? {}, item)]);
  return Object.fromEntries((properties ?? member) ? entries.reverse() : entries);
}

describe('the canonical form of a file', () => {
  for (const kind of KINDS)
    it(`of a ${kind.type} reads, and is written, the same again`, async function () {
      this.timeout(60_000);
      await fc.assert(
        fc.asyncProperty(bodyOf(kind), async (body) => {
          const object = kind.schema.properties['object'] ? `${body['object']}.` : '';
          const path = pathOf(kind.type, `${object}${body['apiName']}`);
          if (path === null || `${body['apiName']}` in {} || `${body['object']}` in {}) return;
          if (kind.naming?.is(`${body['apiName']}`) === false) return;
          const first = await read({ [path]: json(body) });
          assert.deepEqual(first.problems, [], JSON.stringify(body));
          const [draft] = first.drafts;
          assert.ok(draft);

          const again = await read({ [path]: draft.yaml });
          assert.deepEqual(again.problems, [], draft.yaml);
          assert.equal(again.drafts[0]?.yaml, draft.yaml);
          assert.deepEqual(again.drafts[0]?.body, draft.body);

          for (const other of [
            json(turned(kind.schema as Schema, body), 2),
            emitYaml(turned(kind.schema as Schema, body) as { [key: string]: YamlValue }).replaceAll('\n', '\r\n'),
            `\ufeff# a comment\n---\n${draft.yaml}...\n`,
          ])
            assert.equal((await read({ [path]: other })).drafts[0]?.yaml, draft.yaml, other);

          // Not by JSON.parse, which takes some escaped keys for others in V8 14.
          const said = structuredClone(draft.body);
          assert.deepEqual(load(draft.yaml), said, `js-yaml: ${draft.yaml}`);
          for (const version of ['1.1', '1.2'] as const)
            assert.deepEqual(parse(draft.yaml, { version }), said, `yaml ${version}: ${draft.yaml}`);
          assert.match(draft.yaml, /^type: \w+\napiName: /);
          assert.match(draft.yaml, /[^\n]\n$/);
        }),
        { numRuns: RUNS },
      );
    });

  it('has one hash for equal files, however produced, and another for any difference', async () => {
    const role = (more: string) => `type: Role\napiName: A\nlabel: A\n${more}`;
    const files: Files = { 'roles/A.yaml': role(''), 'roles/B.yaml': 'type: Role\napiName: B\nlabel: B\n' };
    const hash = async (of: Files, pkg: unknown = null) => (await readProject(of, pkg)).manifestHash;
    const expected = await hash(files);
    const members = ['B', 'A', 'B'];
    for (const same of [
      hash(Object.fromEntries(Object.entries(files).reverse())),
      hash(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, text.replaceAll('\n', '\r\n')]))),
      hash({ ...files, 'roles/A.yaml': `${role('')}\n\n` }),
      hash({ ...files, 'roles/A.yaml': role('').trimEnd() }),
      hash({ ...files, 'erp-project.yaml': 'metadataVersion: 7\n' }),
      hash(files, { version: 1, types: [{ name: 'Role', members: ['*'] }] }),
      hash(files, { types: [{ members, name: 'Role' }], version: 1 }),
    ])
      assert.equal(await same, expected);
    const others = [
      { ...files, 'roles/A.yaml': role('# a comment\n') },
      { ...files, 'roles/A.yaml': role('').replace('A\n', 'A \n') },
      { ...files, 'roles/A.yaml': `\n${role('')}` },
      { ...files, 'roles/C.yaml': files['roles/B.yaml']! },
      { 'roles/A.yaml': files['roles/B.yaml']!, 'roles/B.yaml': files['roles/A.yaml']! },
      { 'roles/A.yaml': role('') },
      { ...files, 'manifest/destructiveChanges.yaml': 'version: 1\ntypes: []\n' },
    ];
    const hashes = [expected, await hash(files, { version: 1, types: [{ name: 'Role', members: ['A'] }] })];
    for (const other of others) hashes.push(await hash(other));
    assert.equal(new Set(hashes).size, others.length + 2);
  });
});

describe('declared dependencies of a type', () => {
  for (const { type, references, dependsOn = [], ...kind } of KINDS)
    it(`include every type that a ${type} can reference`, () => {
      if (!references) return assert.deepEqual(dependsOn, []);
      fc.assert(
        fc.property(bodyOf({ type, ...kind }), (body) => {
          for (const named of references(body)) assert.ok(dependsOn.includes(named.type as typeof type), named.type);
        }),
        { numRuns: RUNS },
      );
    });
});
