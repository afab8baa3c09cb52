/** Filters and patches of provisioning clients: what they mean, and that nothing a client sends takes long or reaches further. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, it } from 'mocha';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { passes, readFilter } from '../../../services/data/scim/filter.ts';
import { attributesOf, patched } from '../../../services/data/scim/patch.ts';
import { ENTERPRISE_SCHEMA, USER_SCHEMA } from '../../../services/data/scim/schema.ts';
import { fieldsOf, nameParts, USER_TABLE } from '../../../services/data/scim/user-changes.ts';
import { assertPrompt } from '../../support/processor.ts';

const scimTypeOf = (work: () => unknown): unknown => {
  try {
    work();
    return null;
  } catch (error) {
    assert.ok(error instanceof PlatformError, String(error));
    return error.details?.['scimType'];
  }
};
const BEFORE = {
  userName: 'joan@demo.example',
  displayName: 'Joan Lake',
  name: { formatted: 'Joan Lake', givenName: 'Joan', familyName: 'Lake' },
  emails: [{ value: 'a@demo.example', type: 'work', primary: true }],
  active: true,
};
const after = (...operations: object[]) => patched(BEFORE, { Operations: operations }, USER_TABLE);

describe('a patch of a provisioning client', () => {
  it('reaches every attribute by its path, ignoring case and schema prefix', () => {
    const { active, locale, manager } = after(
      { op: 'REPLACE', path: 'ACTIVE', value: 'False' },
      { op: 'add', path: `${USER_SCHEMA}:locale`, value: 'de-DE' },
      { op: 'add', path: `${ENTERPRISE_SCHEMA}:manager.value`, value: 'x' },
    );
    assert.deepEqual({ active, locale, manager }, { active: false, locale: 'de-DE', manager: { value: 'x' } });
    assert.deepEqual(after({ op: 'add', path: ENTERPRISE_SCHEMA, value: { manager: { value: 'y' } } })['manager'], {
      value: 'y',
    });
  });

  it('keeps one primary value, and makes what a filter describes', () => {
    const more = after({ op: 'add', path: 'emails', value: [{ value: 'b@demo.example', primary: true }] });
    assert.deepEqual(more['emails'], [
      { value: 'a@demo.example', type: 'work', primary: false },
      { value: 'b@demo.example', primary: true },
    ]);
    assert.equal(fieldsOf(BEFORE, { ...BEFORE, ...more }).email, 'b@demo.example');
    const home = after({ op: 'replace', path: 'emails[type eq "home"].value', value: 'c@demo.example' })['emails'];
    assert.deepEqual((home as object[])[1], { type: 'home', value: 'c@demo.example' });
    assert.deepEqual(after({ op: 'remove', path: 'emails[type eq "work"]' })['emails'], []);
  });

  it('splits names into their parts', () => {
    const parts = (name: string): string => {
      const { givenName, familyName } = nameParts(name);
      return `${givenName} | ${familyName}`;
    };
    assert.equal(parts('Joan Lake'), 'Joan | Lake');
    assert.equal(parts('Joan Mary Lake'), 'Joan Mary | Lake');
    assert.equal(parts('Ana van der Berg'), 'Ana | van der Berg');
    assert.equal(parts('Berg, Ana'), 'Ana | Berg');
    assert.equal(parts('van der Berg, Ana Maria'), 'Ana Maria | van der Berg');
    assert.equal(parts('joan lake'), 'joan | lake');
    assert.equal(parts('Joan'), 'Joan | Joan');
    assert.equal(parts('Lake, Joan, Dr.'), 'Lake Joan | Dr.');
    for (const odd of ['', ' ', ',', ', ', 'x,', ',x']) assert.equal(nameParts(odd).formatted, odd);
  });

  it('keeps a displayName when unchanged name parts are sent', () => {
    const named = (displayName: string, givenName: string, familyName: string): string | undefined => {
      const before = { ...BEFORE, displayName, name: nameParts(displayName) };
      const value = { 'name.givenName': givenName, 'name.familyName': familyName };
      const replaced = patched(before, { Operations: [{ op: 'Replace', value }] }, USER_TABLE);
      return fieldsOf(before, replaced).displayName;
    };
    assert.equal(named('Berg, Ana', 'Ana', 'Berg'), 'Berg, Ana');
    assert.equal(named('Berg, Eva van der', 'Eva', 'van der Berg'), 'Berg, Eva van der');
    assert.equal(named('Berg, Ana (External)', 'Ana', 'Berg'), 'Berg, Ana (External)');
    assert.equal(named('Gabriel García Márquez', 'Gabriel', 'García Márquez'), 'Gabriel García Márquez');
    assert.equal(named('Berg, Ana', 'Bea', 'Berg'), 'Berg, Bea', 'in the form that it has');
    assert.equal(named('Berg, Ana Maria', 'Ana', 'Berg'), 'Berg, Ana', 'a name that got shorter');
    assert.equal(named('Joan Mary Lake', 'Joan', 'Lake'), 'Joan Lake');
    assert.equal(named('Joan Lake', 'Lake', 'Lake'), 'Lake Lake');
  });

  it('applies the changed part of a name', () => {
    const named = (operation: object) => fieldsOf(BEFORE, after(operation)).displayName;
    assert.equal(named({ op: 'replace', path: 'name.familyName', value: 'Shore' }), 'Joan Shore');
    assert.equal(named({ op: 'replace', path: 'name.formatted', value: 'J. L.' }), 'J. L.');
    assert.equal(named({ op: 'replace', path: 'displayName', value: 'JL' }), 'JL');
    assert.equal(named({ op: 'replace', path: 'active', value: false }), 'Joan Lake');
  });

  it('touches no prototype', () => {
    const hostile = JSON.parse('{"userName":"x","__proto__":{"active":false},"name":{"__proto__":{"formatted":"y"}}}');
    assert.equal(
      scimTypeOf(() => attributesOf(hostile, USER_TABLE)),
      'invalidPath',
    );
    for (const path of ['__proto__', 'constructor.prototype', 'name.__proto__', 'emails[type eq "work"].__proto__'])
      assert.equal(
        scimTypeOf(() => after({ op: 'add', path, value: 'x' })),
        'invalidPath',
        path,
      );
    assert.equal(({} as Record<string, unknown>)['active'], undefined);
  });

  it('answers any operations with attributes or an error, in bounded time', () => {
    const part = fc.oneof(
      fc.constantFrom('emails', 'name.familyName', 'active', '[type eq "work"]', '.value', 'urn:', '"', '(', '\\'),
      fc.string(),
    );
    const operation = fc.record(
      {
        op: fc.constantFrom('add', 'remove', 'Replace', 'x'),
        path: fc.array(part, { maxLength: 6 }).map((parts) => parts.join('')),
        value: fc.jsonValue(),
      },
      { requiredKeys: ['op'] },
    );
    fc.assert(
      fc.property(fc.array(operation, { minLength: 1, maxLength: 5 }), (operations) => {
        scimTypeOf(() => fieldsOf(BEFORE, after(...operations)));
      }),
      { numRuns: 500 },
    );
  });
});

describe('a filter of a provisioning client', () => {
  it('gives not the highest precedence, then and, then or', () => {
    const holds = (filter: string, ...names: string[]) =>
      passes(readFilter(filter), ({ path }) => names.includes(path));
    assert.equal(holds('a pr or b pr and c pr', 'a'), true);
    assert.equal(holds('(a pr or b pr) and c pr', 'a'), false);
    assert.equal(holds('not (a pr) and b pr', 'b'), true);
    assert.equal(holds('e[type pr and value pr]', 'e.type', 'e.value'), true);
  });

  it('is parsed or refused for any text, and never throws', () => {
    const token = fc.oneof(
      fc.constantFrom('a', 'eq', '"x"', '(', ')', '[', ']', 'not', 'and', 'or', 'pr', '1', 'true', '\\', '"'),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
        const refused = scimTypeOf(() => readFilter(tokens.join(' ')));
        assert.ok(refused === null || refused === 'invalidFilter', String(refused));
      }),
      { numRuns: 1_000 },
    );
    for (const text of [
      '('.repeat(2_000),
      'not '.repeat(500),
      `a eq "${'\\'.repeat(1_990)}`,
      '['.repeat(2_000),
      'a'.repeat(3_000),
    ])
      assert.equal(
        assertPrompt(text.slice(0, 10), () => scimTypeOf(() => readFilter(text))),
        'invalidFilter',
      );
  });
});
