/**
 * Requests to the operations of metadata that cost as much as the contract lets them: what is wide, deep, long or wrong in
 * as many places as fit. Each is made when it is asked for, because some are large. They are sent as they are, by a user
 * with `metadataManage`; the answer may be any but a 500, and no process may stand still over it.
 */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { COMPONENT_TYPES } from '../../lib/schema/snapshot.ts';
import type { HostileGenerator, HostileRequest } from './hostile.ts';

type Files = Readonly<Record<string, string>>;

const FILE_BYTES = 1024 * 1024;
const MARKS_PER_FILE = 50_000;

function post(name: string, path: string, body: string | Uint8Array, gzip = false): HostileRequest {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return {
    name,
    method: 'POST',
    path,
    headers: {
      'content-type': 'application/json',
      ...(gzip ? { 'content-encoding': 'gzip' } : {}),
      ...(path === '/metadata/deploy' ? { 'idempotency-key': randomUUID() } : {}),
    },
    body: gzip ? gzipSync(bytes) : bytes,
  };
}

const EVERYTHING = COMPONENT_TYPES.map((name) => ({ name, members: ['*'] }));

/** A validation of files; the package names whatever they are. */
const validation = (name: string, files: Files, pkg: unknown = { version: 1, types: EVERYTHING }): HostileGenerator => {
  return () => post(name, '/metadata/validate', JSON.stringify({ files, package: pkg }));
};

const lazily = (name: string, files: () => Files): HostileGenerator => {
  return () => validation(name, files())();
};

/** One file with a text, as the description of a value set would be. */
const oneFile = (name: string, text: () => string): HostileGenerator =>
  lazily(name, () => ({ 'valueSets/Hostile.yaml': text() }));

/** The same text in as many files as the body may have bytes for. */
const manyFiles = (name: string, count: number, text: () => string): HostileGenerator =>
  lazily(name, () => {
    const one = text();
    return Object.fromEntries(Array.from({ length: count }, (_, i) => [`valueSets/Hostile${i}.yaml`, one]));
  });

const VALUE_SET = 'type: ValueSet\napiName: Hostile\nlabel: Hostile\n';
const COMBINING = '\u0301';

/** Texts that cost a YAML parser much: brackets, depth, width, errors, references, long scalars. */
const HOSTILE_YAML: readonly HostileGenerator[] = [
  oneFile('yaml: closing brackets', () => ']'.repeat(FILE_BYTES)),
  oneFile('yaml: closing braces after a value', () => `a: 1\n${'}'.repeat(FILE_BYTES - 10)}`),
  oneFile('yaml: opening brackets', () => '['.repeat(FILE_BYTES)),
  oneFile('yaml: opening and closing brackets', () => '[]'.repeat(FILE_BYTES / 2)),
  oneFile('yaml: brackets to the bound of depth', () => `${'['.repeat(490)}${']'.repeat(490)}\n`.repeat(1_000)),
  oneFile('yaml: nested mappings in one line', () => '{a: '.repeat(400)),
  oneFile('yaml: nested dashes', () => '- '.repeat(MARKS_PER_FILE - 1)),
  oneFile('yaml: nested by indentation', () =>
    Array.from({ length: 1_400 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
  ),
  oneFile('yaml: as many keys as fit', () =>
    Array.from({ length: MARKS_PER_FILE / 2 - 10 }, (_, i) => `k${i}: ${i}`).join('\n'),
  ),
  oneFile('yaml: as many items as fit', () => `a: [${'1,'.repeat(MARKS_PER_FILE - 10)}1]`),
  oneFile('yaml: the same key', () => 'a: 1\n'.repeat(MARKS_PER_FILE / 2 - 10)),
  oneFile('yaml: an error in every line', () => 'a: b: c\n'.repeat(MARKS_PER_FILE / 3 - 10)),
  oneFile('yaml: tabs', () => '\t- a\n'.repeat(MARKS_PER_FILE / 2 - 10)),
  oneFile('yaml: a tab before every character', () => '\t'.repeat(FILE_BYTES)),
  oneFile('yaml: quotes that do not end', () => `a: ${'" '.repeat(MARKS_PER_FILE - 10)}`),
  oneFile('yaml: single quotes', () => `a: ${"' ".repeat(FILE_BYTES / 2 - 10)}`),
  oneFile('yaml: complex keys', () => '? a\n'.repeat(MARKS_PER_FILE / 2 - 10)),
  oneFile('yaml: nested complex keys', () => '? '.repeat(MARKS_PER_FILE - 10)),
  oneFile('yaml: tags', () => '!a '.repeat(FILE_BYTES / 3)),
  oneFile('yaml: percent signs', () => '%A b\n'.repeat(MARKS_PER_FILE - 10)),
  oneFile('yaml: at signs', () => '@'.repeat(FILE_BYTES)),
  oneFile('yaml: pipes', () => '| '.repeat(FILE_BYTES / 2)),
  oneFile('yaml: asterisks', () => '* '.repeat(FILE_BYTES / 2)),
  oneFile('yaml: documents', () => '---\n'.repeat(MARKS_PER_FILE / 4 - 10)),
  oneFile('yaml: ends of documents', () => '...\n'.repeat(MARKS_PER_FILE - 10)),
  oneFile('yaml: carriage returns', () => '\r'.repeat(FILE_BYTES)),
  oneFile('yaml: aliases of aliases', () =>
    ['a0: &a0 [x, x, x]', ...Array.from({ length: 5_000 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`)].join(
      '\n',
    ),
  ),
  oneFile('yaml: merge keys', () => `a: &a {x: 1}\n${'b:\n  <<: *a\n'.repeat(10_000)}`),
  oneFile('yaml: a plain text of 1 MiB', () => `${VALUE_SET}description: ${'a'.repeat(FILE_BYTES - 200)}\n`),
  oneFile('yaml: a plain text of many words', () => `${VALUE_SET}description: ${'a '.repeat(FILE_BYTES / 2 - 200)}\n`),
  oneFile('yaml: spaces', () => `a:${' '.repeat(FILE_BYTES - 10)}b`),
  oneFile('yaml: escapes', () => `${VALUE_SET}description: "${'\\u00e9'.repeat(FILE_BYTES / 6 - 200)}"\n`),
  oneFile('yaml: a folded text', () => `a: >\n${'  b\n\n'.repeat(MARKS_PER_FILE / 2 - 10)}`),
  oneFile('yaml: a literal of blank lines', () => `a: |\n${'\n'.repeat(MARKS_PER_FILE - 10)}`),
  oneFile('yaml: comments', () => '# a\n'.repeat(MARKS_PER_FILE / 2 - 10)),
  oneFile('yaml: a number of 1 MiB', () => `a: ${'9'.repeat(FILE_BYTES - 10)}`),
  oneFile('yaml: a number of 1 MiB of zeros', () => `a: 1${'0'.repeat(FILE_BYTES - 10)}`),
  oneFile('yaml: a number with an exponent', () => `a: 0.${'0'.repeat(FILE_BYTES - 40)}1e${'9'.repeat(20)}`),
  oneFile('yaml: combining marks', () => `a: a${COMBINING.repeat(FILE_BYTES / 2 - 10)}`),
  manyFiles('yaml: errors in 2,000 files', 2_000, () => ']}'.repeat(100)),
  manyFiles('yaml: as many lines as all files may have', 40, () =>
    Array.from({ length: 12_000 }, (_, i) => `k${i}: v`).join('\n'),
  ),
  manyFiles('yaml: 30 files of 1 MiB', 30, () => `description: ${'a'.repeat(FILE_BYTES - 100)}`),
  manyFiles('yaml: 10,000 files', 10_000, () => VALUE_SET),
];

const field = (object: string, name: string, more: string): Files => ({
  [`objects/${object}/fields/${name}.yaml`]: `type: CustomField\napiName: ${name}\nobject: ${object}\nlabel: ${name}\n${more}\n`,
});

const object = (name: string, more = ''): Files => ({
  [`objects/${name}/object.yaml`]: `type: CustomObject\napiName: ${name}\nlabel: ${name}\nlabelPlural: ${name}s\nnameField:\n  label: Name\n  fieldType: text\napi:\n  published: true\n${more}`,
});

const rule = (objectName: string, name: string, condition: string): Files => ({
  [`objects/${objectName}/validationRules/${name}.yaml`]: `type: ValidationRule\napiName: ${name}\nobject: ${objectName}\ncondition: ${JSON.stringify(condition)}\nmessage: No.\n`,
});

/** `leaves` copies of an expression, joined so that the tree is as flat as it can be. */
const balanced = (leaf: string, operator: string, leaves: number): string =>
  leaves === 1
    ? leaf
    : `(${balanced(leaf, operator, Math.floor(leaves / 2))}${operator}${balanced(leaf, operator, Math.ceil(leaves / 2))})`;

const FIELDS = [field('H__c', 'A__c', 'fieldType: decimal'), field('H__c', 'T__c', 'fieldType: text')];

/** Rules with this condition on as many objects as are needed for `count` of them. */
const rules = (count: number, condition: string): Files => {
  const files: Record<string, string> = {};
  for (let at = 0; at < count; at += 100) {
    const name = `Heavy${at / 100}__c`;
    Object.assign(files, object(name), field(name, 'A__c', 'fieldType: decimal'));
    Object.assign(files, field(name, 'T__c', 'fieldType: text'));
    for (let i = at; i < Math.min(at + 100, count); i++) Object.assign(files, rule(name, `R${i}`, condition));
  }
  return files;
};

/** Configuration that is well-formed and costs a planner much. */
const HOSTILE_CONFIGURATION: readonly HostileGenerator[] = [
  lazily('rules: 1,900 of them, each as large as an expression may be', () =>
    rules(1_900, balanced('record.A__c>1', '||', 225)),
  ),
  lazily('rules: 1,900 of them, each with as many mistakes as fit', () =>
    rules(1_900, balanced('record.X>"', '||', 1)),
  ),
  lazily('rules: 1,900 of them, each naming fields that are not there', () =>
    rules(1_900, balanced('record.X__c>1', '||', 225)),
  ),
  lazily('rules: nested functions', () => rules(1_900, `${'upper('.repeat(190)}record.T__c${')'.repeat(190)}=="A"`)),
  lazily('rules: 1,900 patterns', () => rules(1_900, `record.T__c.matches("${'(?:a?){600}'.repeat(3)}b*")`)),
  lazily('formulas: as many as an object may have, over each other', () =>
    Object.assign(
      {},
      object('H__c'),
      ...FIELDS,
      ...Array.from({ length: 480 }, (_, i) =>
        field(
          'H__c',
          `F${i}__c`,
          `fieldType: formula\nformula:\n  resultType: decimal\n  expression: ${JSON.stringify(
            balanced(i === 0 ? 'record.A__c' : `record.F${i - 1}__c`, '+', 100),
          )}`,
        ),
      ),
    ),
  ),
  lazily('patterns: 480 fields', () =>
    Object.assign(
      {},
      object('H__c'),
      ...Array.from({ length: 480 }, (_, i) =>
        field('H__c', `P${i}__c`, `fieldType: text\nlength: 255\npattern: "(?:a?){600}b*${i}"`),
      ),
    ),
  ),
  lazily('names: 1,900 fields of which each refers to what is not there', () =>
    Object.assign(
      {},
      ...Array.from({ length: 4 }, (_, o) => object(`N${o}__c`)),
      ...Array.from({ length: 1_900 }, (_, i) =>
        field(`N${i % 4}__c`, `R${i}__c`, 'fieldType: reference\nreferenceTo: [Nowhere__c]'),
      ),
    ),
  ),
  lazily('values: a value set with as many as a file may have', () => ({
    'valueSets/Hostile.yaml': `${VALUE_SET}values:\n${Array.from({ length: 8_000 }, (_, i) => `  - value: v${i}\n    label: v${i}`).join('\n')}\n`,
  })),
  lazily('values: a default value of combining marks', () =>
    Object.assign(
      {},
      object('H__c'),
      field('H__c', 'D__c', `fieldType: text\ndefaultValue: "a${COMBINING.repeat(FILE_BYTES / 2 - 200)}"`),
    ),
  ),
  lazily('permissions: a profile that names 5,000 fields', () => ({
    'profiles/Hostile.yaml': `type: Profile\napiName: Hostile\nlabel: Hostile\nfields:\n${Array.from({ length: 5_000 }, (_, i) => `  O${i}__c.F${i}__c: {read: true, edit: true}`).join('\n')}\n`,
  })),
  lazily('roles: a chain of 1,900, and back to the first', () =>
    Object.fromEntries(
      Array.from({ length: 1_900 }, (_, i) => [
        `roles/R${i}.yaml`,
        `type: Role\napiName: R${i}\nlabel: R${i}\nparent: R${(i + 1) % 1_900}\n`,
      ]),
    ),
  ),
  lazily('groups: 900, each with all the others', () => {
    const all = Array.from({ length: 900 }, (_, i) => `G${i}`);
    const text = (name: string): string =>
      `type: Group\napiName: ${name}\nlabel: ${name}\nmembers:\n  groups: [${all.slice(0, 500).join(', ')}]\n`;
    return Object.fromEntries(all.map((name) => [`groups/${name}.yaml`, text(name)]));
  }),
];

const packages = (name: string, path: string, types: () => unknown): HostileGenerator => {
  return () =>
    post(
      name,
      path,
      JSON.stringify(
        path === '/metadata/retrieve'
          ? { package: { version: 1, types: types() } }
          : { files: {}, package: { version: 1, types: types() } },
      ),
    );
};

const bomb = (name: string, path: string, text: () => string): HostileGenerator => {
  return () => post(name, path, text(), true);
};

/** Bodies that are large, or small until they are unpacked. */
const HOSTILE_BODIES: readonly HostileGenerator[] = [
  bomb('gzip: nine million values', '/metadata/validate', () => `{"files":{"a":[${'1,'.repeat(9_000_000)}1]}}`),
  bomb('gzip: 31 MiB of one text', '/metadata/validate', () => `{"files":{"a":"${'a'.repeat(31 * FILE_BYTES)}"}}`),
  bomb('gzip: 100 MiB', '/metadata/deploy', () => `{"files":{"a":"${'a'.repeat(100 * FILE_BYTES)}"}}`),
  bomb('gzip: 31 files of closing brackets', '/metadata/deploy', () =>
    JSON.stringify({
      files: Object.fromEntries(
        Array.from({ length: 31 }, (_, i) => [`valueSets/V${i}.yaml`, ']'.repeat(FILE_BYTES - 100)]),
      ),
      package: { version: 1, types: EVERYTHING },
    }),
  ),
  bomb('gzip: a million unknown properties', '/metadata/validate', () => {
    const names = Array.from({ length: 1_000_000 }, (_, i) => `"u${i}":0`).join(',');
    return `{"files":{},${names}}`;
  }),
  bomb('gzip: a million forbidden properties', '/metadata/deploy', () => {
    const items = Array.from({ length: 1_000_000 }, () => '{"userId":0}').join(',');
    return `{"files":{},"package":{"version":1,"types":[${items}]}}`;
  }),
  bomb('gzip: a million types', '/metadata/validate', () => {
    const types = Array.from({ length: 1_000_000 }, () => '{"name":"A","members":[]}').join(',');
    return `{"files":{},"package":{"version":1,"types":[${types}]}}`;
  }),
  bomb('gzip: brackets', '/metadata/validate', () => '['.repeat(31 * FILE_BYTES)),
  bomb('gzip: digits', '/metadata/validate', () => `{"files":${'0'.repeat(31 * FILE_BYTES)}}`),
  packages('package: 100,000 members', '/metadata/retrieve', () => [
    { name: 'CustomField', members: Array.from({ length: 90_000 }, (_, i) => `A${i}`) },
  ]),
  packages('package: 2,000 wildcards', '/metadata/retrieve', () =>
    EVERYTHING.map(({ name }) => ({
      name,
      members: ['*', ...Array.from({ length: 130 }, (_, i) => `O${i}__c.*`)],
    })),
  ),
  packages('package: everything', '/metadata/retrieve', () => EVERYTHING),
  packages('package: one type 30,000 times', '/metadata/retrieve', () =>
    Array.from({ length: 30_000 }, () => ({ name: 'CustomField', members: ['*'] })),
  ),
  packages('package: members of combining marks', '/metadata/retrieve', () => [
    { name: 'CustomField', members: Array.from({ length: 2_000 }, () => `a${COMBINING.repeat(190)}`) },
  ]),
];

/** All of them. */
export const HOSTILE_METADATA: readonly HostileGenerator[] = [
  ...HOSTILE_YAML,
  ...HOSTILE_CONFIGURATION,
  ...HOSTILE_BODIES,
];
