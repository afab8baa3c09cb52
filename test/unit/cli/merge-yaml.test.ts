/** Files of a person and what the platform keeps of them: docs/reference/cli-metadata.md#deploy. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { mergeYaml } from '../../../cli/metadata/merge-yaml.ts';
import { jcs } from '../../../lib/metadata/manifest.ts';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import { parseYaml, type YamlValue } from '../../../lib/yaml/parse.ts';
import { assertPrompt } from '../../support/processor.ts';

type Mapping = { [key: string]: YamlValue };

const key = fc.constantFrom('apiName', 'label', 'type', 'value', 'fields', 'rules', 'x y', '1', 'yes', 'a');
const scalar = fc.oneof(
  fc.constantFrom<YamlValue>(null, true, false, 0, 1.5, -3),
  fc.string({ maxLength: 12 }).filter((text) => text.isWellFormed() && !/[\p{Cc}\p{Cn}]/u.test(text)),
  fc.constantFrom('two\nlines', 'ends\n', '2024-01-01', '# no comment', 'a: b', 'null', '- x', ''),
);
const { mapping } = fc.letrec<{ value: YamlValue; mapping: Mapping }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    tie('mapping'),
    fc.array(tie('value'), { maxLength: 4 }),
  ),
  mapping: fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: true }),
}));
/** A changed value: one with some members of another. */
const change = (before: YamlValue, after: YamlValue, at: number): YamlValue => {
  const isMap = (value: YamlValue): value is Mapping =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMap(before) || !isMap(after)) return at % 2 ? after : before;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names.flatMap((name, i): [string, YamlValue][] => {
      const [own, other] = [before[name], after[name]];
      if (own === undefined) return (at + i) % 2 ? [[name, other!]] : [];
      if (other === undefined) return (at + i) % 3 ? [[name, own]] : [];
      return [[name, change(own, other, at + i)]];
    }),
  );
};

/** The text of a mapping with a numbered comment before each of its own keys, and blank lines here and there. */
function commented(value: Mapping): string {
  return Object.entries(value)
    .map(
      ([name, member], i) =>
        `${i % 2 ? '\n' : ''}# comment ${i} of ${JSON.stringify(name)}\n${emitYaml({ [name]: member })}`,
    )
    .join('');
}

const RUNS = 300;

describe('a file merged with its canonical form', () => {
  it('has the canonical content, and keeps comments of remaining items', () => {
    fc.assert(
      fc.property(mapping, mapping, fc.nat(5), (mine, other, at) => {
        const [before, after] = [
          { z: 1, ...mine },
          { z: 1, ...(change(mine, other, at) as Mapping) },
        ];
        const text = commented(before);
        const result = mergeYaml(text, emitYaml(after));
        assert.equal(jcs(parseYaml(result).value), jcs(after), result);
        for (const [i, name] of Object.keys(before).entries()) {
          const comment = `# comment ${i} of ${JSON.stringify(name)}\n`;
          if (i === 0 || name in after) assert.ok(result.includes(comment), `${comment}${result}`);
        }
        // Once merged it stays as it is.
        assert.equal(mergeYaml(result, emitYaml(after)), result);
      }),
      { numRuns: RUNS },
    );
  });

  it('is byte-identical when the content is equal', () => {
    fc.assert(
      fc.property(mapping, (value) => {
        const text = commented({ z: 1, ...value });
        const turned = emitYaml(Object.fromEntries(Object.entries({ z: 1, ...value }).toReversed()));
        assert.equal(mergeYaml(text, turned), text);
      }),
      { numRuns: RUNS },
    );
  });

  it('stays canonical', () => {
    const [before, after] = ['a: 1\nb:\n  - x\n', 'a: 1\nb:\n  - "2024-01-01"\nc: 3\n'];
    assert.equal(mergeYaml(before, after), after);
  });

  it('keeps comments within lists, with the items that they belong to', () => {
    const mine = `# Colours.
values:
    # The first.
    - value: red   # like fire
      label: Red

    # The second.
    - value: green
      label: Green
    - value: blue # sky
# At the end.
`;
    const kept = 'values:\n  - value: blue\n  - value: red\n    label: Bright red\n  - value: white\n';
    assert.equal(
      mergeYaml(mine, kept),
      `# Colours.
values:
    - value: blue # sky
    # The first.
    - value: red # like fire
      label: Bright red
    - value: white
# At the end.
`,
    );
  });

  it('is the canonical form when the file cannot be parsed', () => {
    for (const mine of ['a: [', '', 'a: &x 1\nb: *x\n', '<<<<<<< HEAD\na: 1\n'])
      assert.equal(mergeYaml(mine, 'a: 1\n'), 'a: 1\n', mine);
  });

  it('is computed in bounded time for a large file', () => {
    const values = (count: number, label: string): Mapping => ({
      values: Array.from({ length: count }, (_, i) => ({ value: `v${i}`, label: `${label} ${i}` })),
    });
    const mine = `# Many.\n${emitYaml(values(1_000, 'Value'))}`;
    assertPrompt('1,000 items', () => mergeYaml(mine, emitYaml(values(1_000, 'Other'))), 3_000);
  });
});
