/** `erp metadata` without a platform: large packages in parts, plans and problems as text. */
import assert from 'node:assert/strict';
import { stripVTControlCharacters, styleText } from 'node:util';
import { ApiFailure } from '../../../cli/failure.ts';
import { retrieveAfter } from '../../../cli/metadata/deployments.ts';
import { parseMembers } from '../../../cli/metadata/package.ts';
import { type Change, planLines, unreadOf, unreadText } from '../../../cli/metadata/plan.ts';
import { type Finding, findingLines } from '../../../cli/metadata/problems.ts';
import { type Ask, type Retrieved, retrieve } from '../../../cli/metadata/retrieve.ts';
import type { Terminal } from '../../../cli/output/terminal.ts';
import { manifestHash, memberMatches, sha256, sortTypes } from '../../../lib/metadata/manifest.ts';
import { pathOf } from '../../../lib/metadata/paths.ts';

const MAX = 2_000;
const SOURCE = { baseUrl: 'https://erp.example', tenantId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33' };
const silent = (): void => undefined;

/** A platform with components, which gives 2,000 of them at most. `version`: that of each answer in turn. */
function platformOf(members: readonly { type: string; fullName: string }[], version: () => number) {
  const asked: number[] = [];
  const ask: Ask = async ({ types }) => {
    const found = members.filter(({ type, fullName }) =>
      types.some(({ name, members: wanted }) => name === type && wanted.some((one) => memberMatches(one, fullName))),
    );
    asked.push(found.length);
    if (found.length > MAX)
      throw new ApiFailure({ code: 'TOO_MANY_ITEMS', message: 'Too many.', status: 413, requestId: 'req_1' }, '');
    const files = Object.fromEntries(found.map(({ type, fullName }) => [pathOf(type, fullName), `type: ${type}\n`]));
    return {
      files,
      manifestHash: '',
      generatedAt: '2026-11-21T00:01:22.123+00:00',
      metadataVersion: version(),
      package: { version: 1, types: [] },
      components: found.map(({ type, fullName }) => ({
        type,
        fullName,
        path: pathOf(type, fullName) ?? '',
        hash: `sha256:${sha256('')}`,
        updatedAt: '2026-11-21T00:01:22.123+00:00',
        updatedById: null,
      })),
      notFound: [],
    } satisfies Retrieved;
  };
  return { ask, asked };
}

const business = [
  ...Array.from({ length: 60 }, (_, i) => ({ type: 'CustomObject', fullName: `O${i}__c` })),
  ...Array.from({ length: 5_000 }, (_, i) => ({ type: 'CustomField', fullName: `O${i % 60}__c.F${i}__c` })),
  ...Array.from({ length: 300 }, (_, i) => ({ type: 'Role', fullName: `R${i}` })),
];

describe('erp: a large retrieve', () => {
  it('is assembled from parts into one tree, with the hash of the whole', async () => {
    const { ask, asked } = platformOf(business, () => 7);
    const tree = await retrieve(ask, parseMembers(['CustomObject', 'CustomField', 'Role']), SOURCE, silent);
    assert.equal(tree.components.size, business.length);
    assert.ok(asked.length < 20, `${asked.length} requests`);
    const { 'erp-project.yaml': project, ...files } = Object.fromEntries(tree.files);
    const byType = Map.groupBy(business, ({ type }) => type);
    const types = sortTypes(new Map([...byType].map(([type, all]) => [type, all.map(({ fullName }) => fullName)])));
    assert.equal(tree.manifestHash, manifestHash(files, { version: 1, types }));
    assert.match(project ?? '', new RegExp(`metadataVersion: 7\nmanifestHash: ${tree.manifestHash}\n`));
  });

  it('of named members requests no more than fits a response', async () => {
    const { ask, asked } = platformOf(business, () => 7);
    const named = parseMembers(business.map(({ type, fullName }) => `${type}:${fullName}`));
    assert.equal((await retrieve(ask, named, SOURCE, silent)).components.size, business.length);
    assert.deepEqual(asked, [2_000, 2_000, 1_360]);
  });

  it('restarts when the configuration changes between its parts', async () => {
    const versions = [7, 7, 8, 8, 8, 8];
    const { ask } = platformOf(business, () => versions.shift() ?? 8);
    const tree = await retrieve(ask, parseMembers(['CustomField']), SOURCE, silent);
    assert.equal(tree.metadataVersion, 8);
    assert.equal(tree.components.size, 5_000);
    let version = 0;
    const restless = platformOf(business, () => version++);
    await assert.rejects(retrieve(restless.ask, parseMembers(['CustomField']), SOURCE, silent), /changed in each of 5/);
  });

  it('fails with the reason of the platform when a type cannot be divided', async () => {
    const roles = Array.from({ length: 2_001 }, (_, i) => ({ type: 'Role', fullName: `R${i}` }));
    const { ask } = platformOf(roles, () => 7);
    await assert.rejects(retrieve(ask, parseMembers(['Role']), SOURCE, silent), { code: 'TOO_MANY_ITEMS' });
  });
});

const terminal: Terminal = {
  pretty: true,
  live: false,
  interactive: false,
  width: 60,
  paint: (style, text) => styleText(style, text, { validateStream: false }),
  paintError: (_, text) => text,
  ask: () => Promise.reject(new Error('Nobody is asked.')),
};

describe('erp: a plan', () => {
  const change = (fullName: string, more: Partial<Change> = {}): Change => ({
    type: 'CustomField',
    fullName,
    path: '',
    properties: [],
    destructive: false,
    impact: { records: null, dependents: [] },
    reversible: true,
    ...more,
  });
  const none = { creates: [], updates: [], deletes: [], noops: [] };

  it('is folded when it is long, and whole with --verbose', () => {
    const creates = Array.from({ length: 40 }, (_, i) => change(`A__c.F${i}__c`));
    const short = planLines({ ...none, creates }, { terminal, verbose: false }).map(stripVTControlCharacters);
    assert.equal(short.filter((line) => line.startsWith('  + ')).length, 30);
    assert.ok(short.includes('  … and 10 more (--verbose shows them all)'));
    assert.equal(planLines({ ...none, creates }, { terminal, verbose: true }).length, 42);
    assert.deepEqual(planLines(none, { terminal, verbose: false }), ['Nothing to change.']);
  });

  it('shows old and new values within the width, and data loss in red', () => {
    const long = 'x'.repeat(100);
    const updates = [
      change('A__c.B__c', {
        destructive: true,
        reversible: false,
        properties: [
          { name: 'label', from: 'A', to: long },
          { name: 'length', from: 80, to: null },
        ],
        impact: { records: 1_204, dependents: [{ type: 'Layout', fullName: 'A__c.Default' }] },
      }),
    ];
    const lines = planLines({ ...none, updates }, { terminal, verbose: false });
    assert.ok(lines[0]?.includes(styleText('red', '~', { validateStream: false })));
    const plain = lines.map(stripVTControlCharacters);
    assert.equal(plain[0], '  ~ CustomField A__c.B__c  loses data, 1,204 records, cannot be rolled back');
    assert.ok(plain.includes('      length  80 → (none)'));
    assert.ok(plain.slice(1).every((line) => line.length <= 110));
    assert.ok(
      plain.some((line) => line.endsWith('x…')),
      'a long value is cut',
    );
    assert.match(plain.at(-1) ?? '', /^0 to create, 1 to update, 0 to delete, 0 unchanged\. 1 change loses data\./);
  });

  it('states the retention of deleted data only', () => {
    const deletes = [
      change('A__c.Default', { type: 'Layout', destructive: true }),
      change('A__c.B__c', { destructive: true, impact: { records: 12, dependents: [] } }),
    ];
    const lines = planLines({ ...none, deletes }, { terminal, verbose: false }).map(stripVTControlCharacters);
    assert.equal(lines[0], '  - Layout A__c.Default');
    assert.equal(lines[1], '  - CustomField A__c.B__c  12 records, kept for 30 days');
    assert.match(
      lines.at(-1) ?? '',
      /2 to delete, .* of 1 deletion are kept for 30 days, and a rollback brings them back/,
    );
    assert.doesNotMatch(lines.join(), /lose/);
  });

  it('counts unreadable files that it omits', () => {
    const path = 'objects/A__c/fields/B__c.yaml';
    const blocked = [{ path }, { path }, { path: 'objects/A__c/fields/C__c.yaml' }, { path: 'manifest/package.yaml' }];
    assert.equal(unreadOf({ ...none, noops: [change('A__c.C__c')] }, blocked), 1);
    assert.match(unreadText(1, terminal), /1 file could not be read and is not in this plan/);
  });

  it('of a rollback names the command that brings the files up to date', () => {
    const creates = [change('A__c.B__c'), change('A__c.C__c'), change('A__c.Default', { type: 'Layout' })];
    assert.equal(
      retrieveAfter({ creates, deletes: [] }),
      "erp metadata retrieve --type 'CustomField:A__c.B__c,A__c.C__c' --type 'Layout:A__c.Default'",
    );
    assert.equal(retrieveAfter({ creates: [], deletes: [change('A__c.B__c')] }), 'erp metadata retrieve --prune');
    const many = Array.from({ length: 31 }, (_, i) => change(`A__c.F${i}__c`));
    assert.equal(retrieveAfter({ creates: many, deletes: [] }), "erp metadata retrieve --type 'CustomField'");
  });

  it('escapes control characters in names and values', () => {
    const evil = '\u001b[2J\u0007\u202eabc';
    const updates = [change(evil, { properties: [{ name: evil, from: evil, to: evil }] })];
    const text = planLines(
      { ...none, updates },
      { terminal: { ...terminal, paint: (_, part) => part }, verbose: true },
    );
    for (const line of text) assert.doesNotMatch(line, /[\p{Cc}\p{Bidi_Control}]/u);
  });
});

describe('erp: a problem', () => {
  const finding = (more: Partial<Finding>): Finding => ({ code: 'X', path: 'a.yaml', message: 'No.', ...more });
  const show = (findings: readonly Finding[], text: string, verbose = false): string[] =>
    findingLines(findings, { terminal, severity: 'error', verbose, text: () => text }).map(stripVTControlCharacters);

  it('shows position, line and a caret below it', () => {
    assert.deepEqual(show([finding({ line: 2, column: 4, remedy: 'Do it.' })], 'a: 1\nb: \u00e4\u00f6\nc: 2\n'), [
      'a.yaml:2:4: error: No. X',
      '    2 | b: \u00e4\u00f6',
      '      |    ^',
      '  help: Do it.',
      '',
    ]);
  });

  it('aligns the caret after tabs and in long lines', () => {
    const [, source = '', caret = ''] = show([finding({ line: 1, column: 4 })], '\t\tx!y');
    assert.equal(source[caret.indexOf('^')], '!');
    const [, , wide] = show([finding({ line: 1, column: 3 })], '中文!');
    assert.equal(wide, '      |     ^', 'wide characters take two columns');
    const long = `${'a'.repeat(200)}!${'b'.repeat(200)}`;
    const [, part = '', below = ''] = show([finding({ line: 1, column: 201 })], long);
    assert.equal(part[below.indexOf('^')], '!');
    assert.ok(part.length <= 62);
  });

  it('is shown without a line where the file has none, and many are counted', () => {
    assert.deepEqual(show([finding({ line: 9, column: 1 })], 'a: 1\n'), ['a.yaml:9:1: error: No. X', '']);
    const many = Array.from({ length: 25 }, () => finding({ path: null, type: 'Role', fullName: 'R' }));
    const lines = show(many, '');
    assert.equal(lines[0], 'Role R: error: No. X');
    assert.ok(lines.includes('… and 5 more (--verbose shows them all)'));
    assert.equal(show(many, '', true).length, 50);
  });
});
