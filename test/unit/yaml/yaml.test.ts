import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parse } from 'yaml';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import { parseYaml, YamlError, type YamlValue } from '../../../lib/yaml/parse.ts';
import { processorMs } from '../../support/processor.ts';

const refused = (text: string): YamlError => {
  try {
    parseYaml(text);
  } catch (error) {
    assert.ok(error instanceof YamlError, String(error));
    return error;
  }
  return assert.fail(`taken: ${text.slice(0, 100)}`);
};

describe('metadata: YAML', () => {
  it('is one document of plain mappings, lists and values', () => {
    assert.deepEqual(parseYaml('a: 1\nb:\n  - x\n  - c: yes\nd: ~\ne: 0.50\nf: {g: [true]}\n').value, {
      a: 1,
      b: ['x', { c: 'yes' }],
      d: null,
      e: 0.5,
      f: { g: [true] },
    });
  });

  it('has no anchors, aliases, tags, merge keys, directives or second document', () => {
    for (const text of [
      'a: &x 1',
      'a: &x 1\nb: *x',
      '&x a: 1',
      'a: *x',
      'a: !!str 1',
      '!foo {a: b}',
      'a: !<tag:yaml.org,2002:str> x',
      '<<: {a: 1}',
      'x: {a: 1}\ny:\n  <<: {b: 2}',
      '%YAML 1.2\n---\na: 1',
      '%TAG ! tag:x,2000:\n---\na: 1',
      'a: 1\n---\nb: 2',
      '? [a, b]\n: c',
      '',
      '# only a comment\n',
    ])
      refused(text);
  });

  it('names the line and column of a duplicate key', () => {
    const { line, column, message } = refused('a: 1\nb:\n  c: 1\n  c: 2\n');
    assert.deepEqual([line, column], [4, 3]);
    assert.match(message, /Duplicate key "c"/);
  });

  it('refuses numbers that cannot be held exactly', () => {
    for (const text of ['a: 9007199254740993', 'a: .inf', 'a: .nan', 'a: 1e400']) refused(text);
    for (const text of ['1234567890123456.78', '-0.12345678901234567', '9007199254740991.4', '1e-400'])
      refused(`a: ${text}`);
    const exact = {
      '0.1': 0.1,
      '+1.50': 1.5,
      '.5': 0.5,
      '-.5e1': -5,
      '1.': 1,
      '007': 7,
      '1e-7': 1e-7,
      '0x10': 16,
      '-0.0': -0,
    };
    for (const [text, value] of Object.entries(exact))
      assert.deepEqual(parseYaml(`a: ${text}`).value, { a: value }, text);
  });

  it('refuses text that cannot be stored', () => {
    for (const text of ['a: "\\0"', 'a: "\\ud800"', 'a: "x\0y"', '"\\0": a', 'a: \ud800']) refused(text);
  });

  it('limits the cost of hostile documents', () => {
    const took = processorMs(() => {
      const laughs = ['a: &a ["lol","lol"]'];
      for (let i = 1; i < 9; i++)
        laughs.push(
          `${'abcdefghi'[i]}: &${'abcdefghi'[i]} [${Array(9)
            .fill(`*${'abcdefghi'[i - 1]}`)
            .join(',')}]`,
        );
      refused(laughs.join('\n'));
      refused(`a: ${'['.repeat(500_000)}`);
      refused(`a: ${'{b: '.repeat(900)}`);
      refused(Array.from({ length: 500 }, (_, i) => `${'  '.repeat(i)}a:`).join('\n'));
      refused(`${'- '.repeat(5_000)}a`);
      parseYaml(Array.from({ length: 10_000 }, (_, i) => `k${i}: 1`).join('\n'));
      for (const unit of ['"', '- ', '? ', '&a ', '%a\n', '---\n', '#\n', '[1,', ']', '}', '[]', "' ", '!a ', '* '])
        refused(unit.repeat(300_000));
    });
    assert.ok(took < 5_000);
  });

  it('treats JavaScript property names like any others', () => {
    const { value } = parseYaml('__proto__:\n  polluted: true\nconstructor: x\n');
    assert.deepEqual(Object.keys(value as object), ['__proto__', 'constructor']);
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });

  const scalar = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }).filter((s) => s.isWellFormed() && !s.includes('\0')),
    fc.constantFrom('yes', 'No', 'null', '~', '-', '- a', 'a: b', 'a #b', '0x1F', '1e3', '012', '12:30', '.inf', '<<'),
    fc.constantFrom('a\nb', 'a\n', ' a\nb', 'a\n\n', '\n', 'a\r\nb', '2026-01-01', '*', '&a', '!x', '%', '@', '`'),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n) || Number.isSafeInteger(n)),
    fc.boolean(),
  );
  const { tree } = fc.letrec<{ tree: YamlValue; map: { [key: string]: YamlValue } }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar as fc.Arbitrary<YamlValue>,
      fc.array(tie('tree'), { maxLength: 4 }),
      tie('map'),
    ),
    map: fc.dictionary(
      fc.string({ minLength: 1 }).filter((k) => k !== '<<' && k !== '__proto__'),
      tie('tree'),
      { maxKeys: 4 },
    ),
  }));

  it('is written so that every parser reads the same', () => {
    fc.assert(
      fc.property(tree, (value) => {
        const document = { value };
        const text = emitYaml(document);
        const expected = JSON.parse(JSON.stringify(document));
        assert.ok(text.endsWith('\n') && !text.endsWith('\n\n'));
        assert.deepEqual(JSON.parse(JSON.stringify(parseYaml(text).value)), expected);
        assert.deepEqual(JSON.parse(JSON.stringify(parse(text, { version: '1.1', maxAliasCount: 0 }))), expected);
        assert.equal(emitYaml(parseYaml(text).value as { [key: string]: YamlValue }), text);
      }),
      { numRuns: 500 },
    );
  });
});
