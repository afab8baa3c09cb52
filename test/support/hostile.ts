/**
 * Requests to the operations of records and widgets whose JSON, parameters, texts, patterns and expressions cost as much as the contract
 * lets them. They are for an administrator of the demo tenant, in this order: the first ones deploy the objects that later
 * ones write to. The answer may be any but a 500, and no process may stand still over it.
 */
import { randomUUID } from 'node:crypto';
import { fieldFile, objectFiles, wholePackage } from './metadata-tenant.ts';

export interface HostileRequest {
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `root`. */
  readonly path: string;
  /** /api/v1 unless it is said. */
  readonly root?: string;
  /** All but Authorization. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
}

/** In a path: the id of a dashboard that was made with HOSTILE_DASHBOARD. */
export const DASHBOARD_ID = '{dashboardId}';

/** Made when it is asked for, because some are large. */
export type HostileGenerator = () => HostileRequest;

const BODY_BYTES = 1024 * 1024;
const ADDRESS_CHARS = 16 * 1024;
const HEADER_CHARS = 32 * 1024;
const PREFERENCE_CHARS = 58 * 1024;
const TEXT_CHARS = 131_072;
const EXPRESSION_CHARS = 4_000;
const PATTERN_CHARS = 1_000;

function request(
  name: string,
  method: HostileRequest['method'],
  path: string,
  body: string | null = null,
  headers: Readonly<Record<string, string>> = {},
): HostileRequest {
  return {
    name,
    method,
    path,
    headers: {
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...(method === 'GET' ? {} : { 'idempotency-key': randomUUID() }),
      ...headers,
    },
    body: body === null ? null : Buffer.from(body),
  };
}

const create = (name: string, object: string, body: () => string): HostileGenerator => {
  return () => request(name, 'POST', `/data/${object}`, body());
};

const record = (name: string, object: string, fields: () => object): HostileGenerator =>
  create(name, object, () => JSON.stringify({ name: 'hostile', ...fields() }));

const query = (name: string, object: string, body: () => object): HostileGenerator => {
  return () => request(name, 'POST', `/data/${object}/query`, JSON.stringify(body()));
};

const list = (
  name: string,
  parameters: () => Readonly<Record<string, string>>,
  object = 'Account',
): HostileGenerator => {
  return () => request(name, 'GET', `/data/${object}?${new URLSearchParams(parameters())}`);
};

const condition = (field: string, operator: string, value: unknown): object => ({ id: field, field, operator, value });

const filters = (...conditions: object[]): object => ({ take: 200, filters: { logic: 'or', conditions } });

/** `pieces` joined until they are `chars` long. */
export const repeated = (piece: string, chars: number): string => piece.repeat(Math.floor(chars / piece.length));

const many = (count: number, make: (index: number) => string, by = ','): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(by);

/** Object whose fields have patterns, and object with rules and formulas. */
const PATTERNED = 'HostilePattern__c';
const COMPUTED = 'HostileRule__c';

/** Bodies that are expensive to read. */
const HOSTILE_JSON: readonly HostileGenerator[] = [
  create('json: a number with a million zeros', 'Account', () => `{"name":1.${'0'.repeat(BODY_BYTES - 20)}1}`),
  create('json: a number with a million digits', 'Account', () => `{"name":${'1'.repeat(BODY_BYTES - 20)}}`),
  create('json: an exponent of a million digits', 'Account', () => `{"name":1e${'1'.repeat(BODY_BYTES - 20)}}`),
  create(
    'json: numbers of the longest kind',
    'Account',
    () => `{"name":[${many(2_600, () => `1.${'0'.repeat(390)}1`)}]}`,
  ),
  create('json: more members than allowed', 'Account', () => `{${many(70_000, (i) => `"k${i}":1`)}}`),
  create('json: unknown members', 'Account', () => `{${many(15_000, (i) => `"k${i}":1`)}}`),
  create(
    'json: unknown members and a long number',
    'Account',
    () => `{"n":0.${'1'.repeat(99)},${many(14_999, (i) => `"k${i}":1`)}}`,
  ),
  create(
    'json: members with numbers as names',
    'Account',
    () => `{${many(15_000, (i) => `"${(i * 65_536) % 4_294_967_295}":1`)}}`,
  ),
  create('json: long unknown members', 'Account', () => `{${many(200, (i) => `"${i}${'k'.repeat(5_000)}":1`)}}`),
  create('json: empty objects', 'Account', () => `{"name":[${many(69_000, () => '{}')}]}`),
  create('json: half a million values', 'Account', () => `{"name":[${many(500_000, () => '1')}]}`),
  create('json: brackets', 'Account', () => '['.repeat(BODY_BYTES)),
  create('json: closing brackets', 'Account', () => ']'.repeat(BODY_BYTES)),
  create('json: nested to the bound', 'Account', () => `[${many(16_000, () => `${'['.repeat(31)}${']'.repeat(31)}`)}]`),
  create('json: commas', 'Account', () => ','.repeat(BODY_BYTES)),
  create('json: colons', 'Account', () => ':'.repeat(BODY_BYTES)),
  create('json: blanks', 'Account', () => ' '.repeat(BODY_BYTES)),
  create('json: quotes', 'Account', () => '"'.repeat(BODY_BYTES)),
  create('json: escaped quotes', 'Account', () => `{"name":"${'\\"'.repeat(BODY_BYTES / 2 - 10)}"}`),
  create(
    'json: escaped backslashes in an open string',
    'Account',
    () => `{"name":"${'\\\\'.repeat(BODY_BYTES / 2 - 10)}`,
  ),
  create('json: escapes', 'Account', () => `{"name":"${'\\u00e9'.repeat(BODY_BYTES / 6 - 10)}"}`),
  create('json: half surrogates', 'Account', () => `{"name":"${'\\ud800'.repeat(BODY_BYTES / 6 - 10)}"}`),
  create('json: the same member', 'Account', () => `{${many(60_000, () => '"name":1')}}`),
  query('json: unknown members of a query', 'Account', () =>
    Object.fromEntries(Array.from({ length: 14_990 }, (_, i) => [`k${i}`, 1])),
  ),
  query('json: unknown members of a condition', 'Account', () =>
    filters({
      ...condition('name', 'eq', 'x'),
      ...Object.fromEntries(Array.from({ length: 14_990 }, (_, i) => [`k${i}`, 1])),
    }),
  ),
];

/** Marks that are sorted when a text is normalized, and texts that change their length. */
const TEXTS: Readonly<Record<string, string>> = {
  'combining marks': '\u0301\u0323',
  'letters with as many marks as allowed': `q${'\u0301\u0323'.repeat(15)}`,
  'decomposed syllables': '\u1112\u1161\u11ab',
  'letters that grow when normalized': '\u{1d15e}',
  'letters that grow in upper case': '\u0390\ufb03ß',
  'capital sigmas': 'Σ\u0301',
  'dotted capital i': '\u0130',
  'regional indicators and joiners': '\u{1f3f3}\ufe0f\u200d\u{1f308}',
  'white space': ' \u00a0\u3000',
  'one letter': 'a',
  'the letters of LIKE': '%_\\',
  quotes: `'"\\`,
  'right-to-left letters': 'שלום\u0591\u05b0',
};

const texts = (chars: number, make: (kind: string, text: string) => HostileGenerator): HostileGenerator[] =>
  Object.entries(TEXTS).map(([kind, piece]) => make(kind, repeated(piece, chars)));

/** Texts of the greatest length in every place that takes one. */
const HOSTILE_STRINGS: readonly HostileGenerator[] = [
  ...texts(TEXT_CHARS, (kind, text) => record(`text: ${kind} in a long text`, COMPUTED, () => ({ Long__c: text }))),
  ...texts(240_000, (kind, text) => record(`text: ${kind} in a short text`, 'Account', () => ({ name: text }))),
  ...texts(TEXT_CHARS, (kind, text) => query(`text: ${kind} in where`, 'Account', () => ({ where: { name: text } }))),
  ...texts(TEXT_CHARS, (kind, text) =>
    query(`text: ${kind} in a filter`, COMPUTED, () =>
      filters(condition('name', 'contains', text), condition('Long__c', 'not_contains', text)),
    ),
  ),
  ...texts(1_000, (kind, text) =>
    query(`text: ${kind} in lists of filters`, 'Account', () =>
      filters(
        ...Array.from({ length: 5 }, (_, i) => ({
          ...condition(
            'name',
            'in',
            Array.from({ length: 40 }, () => text),
          ),
          id: `${i}`,
        })),
      ),
    ),
  ),
  ...texts(TEXT_CHARS, (kind, text) => query(`text: ${kind} in a search`, 'Account', () => ({ search: text }))),
  ...texts(200, (kind, text) => query(`text: ${kind} in a short search`, 'Account', () => ({ search: text }))),
  ...texts(60_000, (kind, text) =>
    record(`text: ${kind} in e-mail address and telephone number`, 'Contact', () => ({
      lastName: text,
      email: `${text}@example.com`,
      phone: text,
    })),
  ),
  ...texts(1_300, (kind, text) =>
    list(`text: ${kind} in an address`, () => ({ where: JSON.stringify({ name: text }), search: text.slice(0, 40) })),
  ),
];

/** Parameters and headers that are as long as they may be. */
const HOSTILE_PARAMETERS: readonly HostileGenerator[] = [
  ...[
    'take',
    'skip',
    'fields',
    'where',
    'whereIn',
    'filters',
    'sort',
    'orderBy',
    'search',
    'searchFields',
    'cursor',
    'unknown',
  ].flatMap((name) =>
    [',', '[', '"', '0', '%25', '+', '{"a":', 'a.', 'A'].map((piece): HostileGenerator => {
      return () =>
        request(
          `parameter: ${name} of ${piece}`,
          'GET',
          `/data/Account?${name}=${repeated(piece, ADDRESS_CHARS - 100)}`,
        );
    }),
  ),
  () => request('parameter: as many as fit', 'GET', `/data/Account?${repeated('a&', ADDRESS_CHARS - 100)}`),
  () =>
    request(
      'parameter: as many names as fit',
      'GET',
      `/data/Account?${many(3_000, (i) => `a${i}`, '&').slice(0, ADDRESS_CHARS - 100)}`,
    ),
  () => request('parameter: separators', 'GET', `/data/Account?${repeated('&', ADDRESS_CHARS - 100)}`),
  () => request('parameter: a path of slashes', 'GET', `/data${repeated('/', ADDRESS_CHARS - 100)}`),
  () => request('parameter: a path of dots', 'GET', `/data/${repeated('%2e/', ADDRESS_CHARS - 100)}`),
  ...['"1",', '"', ',', 'W/"1",', '"1" ', '\t', ';q=0.1,', 'application/json;a=', 'en-a-b,'].flatMap((piece) =>
    [
      'if-match',
      'if-none-match',
      'accept',
      'accept-language',
      'accept-encoding',
      'content-type',
      'idempotency-key',
      'x-duplicate-confirmation',
      'traceparent',
    ].map((header): HostileGenerator => {
      return () =>
        request(
          `header: ${header} of ${JSON.stringify(piece)}`,
          'PUT',
          '/data/Account/by/accountNumber/hostile',
          '{"name":"hostile"}',
          {
            [header]: `a${repeated(piece, HEADER_CHARS)}a`,
          },
        );
    }),
  ),
];

const deployment = (name: string, files: () => Readonly<Record<string, string>>): HostileGenerator => {
  return () => {
    const made = files();
    return request(name, 'POST', '/metadata/deploy', JSON.stringify({ files: made, package: wholePackage(made) }));
  };
};

const PATTERNS = [
  '(?:a?){600}b*',
  '(?:a?){300}(?:a?){300}b',
  '(?:(?:a|aa)*)*b',
  '(?:[^b]*[^c]*){200}d',
  '.{900}.*.*.*b',
  '(?:a|b|c|d|e|f|g|h)*z',
];

/** Patterns of as many steps as the contract allows, on as many fields as an object has. */
const HOSTILE_PATTERNS: readonly HostileGenerator[] = [
  deployment('pattern: 480 fields', () =>
    objectFiles(
      PATTERNED,
      Object.fromEntries(
        Array.from({ length: 480 }, (_, i) => [
          `P${i}__c`,
          `fieldType: text\nlength: 800\npattern: ${JSON.stringify(PATTERNS[i % PATTERNS.length])}`,
        ]),
      ),
    ),
  ),
  ...[800, 200, 10].flatMap((chars) => [
    record(`pattern: 480 texts of ${chars} characters`, PATTERNED, () =>
      Object.fromEntries(Array.from({ length: 480 }, (_, i) => [`P${i}__c`, 'a'.repeat(chars)])),
    ),
    record(`pattern: 480 texts of ${chars} emoji`, PATTERNED, () =>
      Object.fromEntries(Array.from({ length: 480 }, (_, i) => [`P${i}__c`, '\u{1f600}'.repeat(Math.min(chars, 400))])),
    ),
  ]),
  ...PATTERNS.map((pattern, i) =>
    deployment(`pattern: a default value that has to match ${pattern}`, () =>
      fieldFile(
        PATTERNED,
        `D${i}__c`,
        `fieldType: text\nlength: 800\npattern: ${JSON.stringify(pattern)}\ndefaultValue: ${'a'.repeat(800)}`,
      ),
    ),
  ),
];

const ruleFile = (name: string, expression: string): Record<string, string> => ({
  [`objects/${COMPUTED}/validationRules/${name}.yaml`]: `type: ValidationRule\napiName: ${name}\nobject: ${COMPUTED}\ncondition: ${JSON.stringify(expression)}\nmessage: No.\n`,
});

const nested = (functions: readonly string[], times: number): string => {
  let expression = 'record.Long__c';
  for (let i = 0; i < times; i++) expression = `${expression}.${functions[i % functions.length]}()`;
  return expression;
};

/** Expressions that are as long, deep or heavy as the contract allows, each as rule and as formula. */
const EXPRESSIONS: Readonly<Record<string, string>> = {
  'nested lower and upper': `${nested(['lower', 'upper'], 180)} == ""`,
  'lower and upper of a long text': `${nested(['lower', 'upper'], 10)}.contains("z")`,
  'a long text replaced': 'record.Long__c.replace("a", "bb").replace("b", "a").replace("a", "b").size() > 1',
  'texts that double': `${'record.Text__c + record.Text__c + '.repeat(50)}"x" == ""`,
  patterns: `record.Long__c.matches("(?:a?){600}b*") || record.Text__c.matches("(?:a?){600}b*")`,
  'the most patterns': `record.Text__c.matches("(?:a?){300}b") || ${many(40, (i) => `record.Text__c.matches("(?:a?){200}${i}")`, ' || ')}`,
  'products of long numbers': `${'record.Number__c * '.repeat(50)}1 > 0`,
  quotients: `${'1 / record.Number__c / '.repeat(100)}1 > 0`,
  'lists within lists': 'record.Many__c.exists(a, record.Many__c.exists(b, record.Many__c.exists(c, a + b + c == "")))',
  'a list of lists': 'record.Many__c.filter(a, record.Many__c.all(b, a.lower() == b.upper())).size() > 0',
  parentheses: `${'('.repeat(190)}true${')'.repeat(190)}`,
  negations: `${'!'.repeat(190)}true`,
  'minus signs': `${'-'.repeat(190)}1 > 0`,
  conditions: `${'true ? '.repeat(180)}true${' : false'.repeat(180)}`,
  'as many operators as fit': `${'true||'.repeat(490)}true`,
  'as many comparisons as fit': many(180, () => 'record.Text__c=="a"', '||'),
  brackets: '['.repeat(EXPRESSION_CHARS),
  'an open text': `"${'\\\\'.repeat(1_900)}`,
  dots: `record${'.a'.repeat(1_900)}`,
  'a long number': `${'9'.repeat(EXPRESSION_CHARS - 10)} > 0`,
  'combining marks': `"a${'\u0301\u0323'.repeat(1_900)}" == ""`,
  'escaped combining marks': `"a${'\\u0301\\u0323'.repeat(320)}" == ""`,
};

const HOSTILE_EXPRESSIONS: readonly HostileGenerator[] = [
  ...Object.entries(EXPRESSIONS).flatMap(([kind, expression], i) => [
    deployment(`expression: ${kind} in a rule`, () => ruleFile(`R${i}`, expression)),
    deployment(`expression: ${kind} in a formula`, () =>
      fieldFile(
        COMPUTED,
        `F${i}__c`,
        `fieldType: formula\nformula:\n  resultType: boolean\n  expression: ${JSON.stringify(expression)}`,
      ),
    ),
  ]),
  ...texts(TEXT_CHARS, (kind, text) =>
    record(`expression: ${kind} in a record`, COMPUTED, () => ({
      Long__c: text,
      Text__c: text.slice(0, 3_900),
      Number__c: `${'9'.repeat(20)}.0000000001`,
      Many__c: Array.from({ length: 200 }, (_, i) => `v${i}`),
    })),
  ),
  list('expression: a list of what was made', () => ({ take: '200' }), COMPUTED),
];

const measures = (aggregation: string, ...fields: string[]): object[] =>
  fields.map((field) => ({ key: `${aggregation}_${field}`, aggregation, field }));

const hostileWidget = (widgetKey: string, query: object): object => ({
  widgetKey,
  title: widgetKey,
  type: 'table',
  layout: { x: 0, y: 0, w: 12, h: 4 },
  query,
});

/** Widgets that group and measure as much as the contract allows. */
export const HOSTILE_DASHBOARD = {
  name: 'Hostile',
  widgets: [
    hostileWidget('rows', {
      objectApiName: 'Invoice__c',
      dimensions: [{ field: 'id' }, { field: 'name' }, { field: 'createdAt' }],
      measures: [
        ...measures('countDistinct', 'id', 'name', 'ownerId', 'createdAt', 'createdById', 'updatedAt', 'updatedById'),
        ...measures('max', 'name', 'createdAt', 'updatedAt'),
      ],
      sort: [{ id: 'countDistinct_name', desc: true }, { id: 'createdAt' }],
      limit: 2_000,
    }),
    hostileWidget('names', {
      objectApiName: 'Account',
      dimensions: [{ field: 'name' }],
      measures: [...measures('countDistinct', 'name', 'ownerId'), ...measures('min', 'name')],
    }),
  ],
};

const run = (name: string, widgetKey: string, body: () => object): HostileGenerator => {
  const path = `/analytics/dashboards/${DASHBOARD_ID}/widgets/${widgetKey}/run`;
  return () => request(name, 'POST', path, JSON.stringify({ maxAgeSeconds: 0, ...body() }));
};

/** Questions about groups of records, and dashboards that ask them. */
const HOSTILE_WIDGETS: readonly HostileGenerator[] = [
  run('widget: 2,000 rows of everything', 'rows', () => ({})),
  run('widget: lists of long values', 'names', () => ({
    conditions: Array.from({ length: 10 }, () => ({
      field: 'name',
      operator: 'in',
      value: Array.from({ length: 200 }, (_, i) => `${i}${'a'.repeat(450)}`),
    })),
  })),
  run('widget: conditions on related records', 'names', () => ({
    conditions: [
      {
        field: 'ownerId',
        operator: 'in_related',
        value: {
          objectApiName: 'Invoice__c',
          field: 'ownerId',
          logic: 'or',
          conditions: Array.from({ length: 9 }, (_, i) => ({
            ...condition('name', 'contains', 'a'.repeat(1_000)),
            id: `${i}`,
          })),
        },
      },
    ],
  })),
  run('widget: a long cursor', 'names', () => ({ cursor: 'A'.repeat(ADDRESS_CHARS) })),
  run('widget: a zone of slashes', 'names', () => ({ timezone: '/'.repeat(64) })),
  run('widget: values of filters that are not there', 'names', () => ({
    filterValues: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, { value: '['.repeat(40_000) }])),
  })),
  ...texts(TEXT_CHARS, (kind, text) =>
    run(`widget: ${kind} in a condition`, 'names', () => ({
      conditions: [
        { field: 'name', operator: 'eq', value: text },
        { field: 'name', operator: 'contains', value: text.slice(0, 1_000) },
      ],
    })),
  ),
  () =>
    request(
      'widget: as many as a dashboard takes',
      'POST',
      '/analytics/dashboards',
      JSON.stringify({
        name: 'Hostile',
        widgets: Array.from({ length: 40 }, (_, i) =>
          hostileWidget(`w${i}`, {
            objectApiName: 'x'.repeat(80),
            dimensions: Array.from({ length: 3 }, () => ({ field: 'x'.repeat(80) })),
            measures: measures('max', ...Array.from({ length: 10 }, (_, at) => `${'x'.repeat(50)}${at}`)),
            filters: { logic: 'and', conditions: [condition('name', 'in', Array(200).fill('a'.repeat(10)))] },
          }),
        ),
      }),
    ),
];

const OBJECT: HostileGenerator = deployment('object', () =>
  objectFiles(COMPUTED, {
    Long__c: `fieldType: longText\nlength: ${TEXT_CHARS}`,
    Text__c: 'fieldType: text\nlength: 4000',
    Number__c: 'fieldType: decimal\nprecision: 30\nscale: 10',
    Many__c: `fieldType: multiPicklist\npicklist:\n  values:\n${many(200, (i) => `    - value: v${i}\n      label: v${i}`, '\n')}`,
  }),
);

const DASHBOARD_BYTES = 256 * 1024;

const dashboard = (name: string, body: () => string): HostileGenerator => {
  return () => request(name, 'POST', '/analytics/dashboards', body());
};
const widgets = (count: number, make: (index: number) => object): object[] =>
  Array.from({ length: count }, (_, i) => ({
    widgetKey: `w${i}`,
    title: 'hostile',
    type: 'table',
    layout: { x: 0, y: i, w: 12, h: 1 },
    ...make(i),
  }));

/** Dashboards that are large, or wrong in very many places. */
const HOSTILE_DASHBOARDS: readonly HostileGenerator[] = [
  dashboard('dashboard: 40 widgets on 40 objects that are not there', () =>
    JSON.stringify({
      name: 'hostile',
      widgets: widgets(40, (i) => ({
        query: {
          objectApiName: `Hostile${i}__c`,
          dimensions: Array(3).fill({ field: 'x'.repeat(80) }),
          measures: Array.from({ length: 10 }, () => ({ key: 'same', aggregation: 'sum', field: 'y'.repeat(80) })),
          sort: [{ id: 'z'.repeat(160) }, { id: 'z'.repeat(160) }],
        },
      })),
    }),
  ),
  dashboard('dashboard: options of very many members', () =>
    JSON.stringify({
      name: 'hostile',
      widgets: widgets(1, () => ({
        type: 'text',
        options: { all: Object.fromEntries(Array.from({ length: 14_900 }, (_, i) => [`m${i}`, i])) },
      })),
    }),
  ),
  dashboard('dashboard: shares with a hundred who are not there', () =>
    JSON.stringify({
      name: 'hostile',
      visibility: 'shared',
      sharedWith: Array.from({ length: 100 }, (_, i) => ({
        principalType: 'role',
        principalId: `${i}${'r'.repeat(250)}`,
        access: 'view',
      })),
    }),
  ),
  dashboard(
    'dashboard: a list of nothing',
    () => `{"name":"hostile","widgets":[${repeated('{},', DASHBOARD_BYTES - 100)}{}]}`,
  ),
  () =>
    request(
      'dashboard: a search of the longest text',
      'GET',
      `/analytics/dashboards?pageSize=100&search=${encodeURIComponent('é'.repeat(200))}`,
    ),
];

/** All of them. */
/** A client's preferences, in as many words as fit. */
const HOSTILE_PREFERENCES: readonly HostileGenerator[] = (
  [
    ['accept', 'application/problem+json', 'a/b;q=0.1,'],
    ['accept-encoding', 'gzip', 'a;q=0.1,'],
    ['accept-language', 'de', 'xx;q=0.1,'],
  ] as const
).map(
  ([header, wanted, piece]) =>
    () =>
      request(`a preference: ${header}`, 'GET', '/data/Account?take=x', null, {
        [header]: `${repeated(piece, PREFERENCE_CHARS)}${wanted}`,
      }),
);

const PARTS = 50;
const PART_CHARS = BODY_BYTES / PARTS - 120;

/** Requests whose parts have as many references to a result as fit in, before they are refused or resolved. */
const HOSTILE_REFERENCES: readonly HostileGenerator[] = (
  [
    ['in one text of each part', 7, (count) => `"name":"${'@{a.id}'.repeat(count)}"`],
    ['in a list of each part', 10, (count) => `"name":[${many(count, () => '"@{a.id}"')}]`],
    ['in members of each part', 18, (count) => many(count, (i) => `"k${i}":"@{a.id}"`)],
    ['that never end', 6, (count) => `"name":"${'@{a.id'.repeat(count)}"`],
  ] satisfies [string, number, (count: number) => string][]
).map(([where, chars, members]) => () => {
  const part = (i: number): string =>
    `{"referenceId":"${i === 0 ? 'a' : `r${i}`}","method":"POST","path":"/data/Account","body":{${i === 0 ? '"name":"a"' : members(Math.floor(PART_CHARS / chars))}}}`;
  return request(`references ${where}`, 'POST', '/composite', `{"requests":[${many(PARTS, part)}]}`);
});

export const HOSTILE_TEXTS: readonly HostileGenerator[] = [
  OBJECT,
  ...HOSTILE_REFERENCES,
  ...HOSTILE_PREFERENCES,
  ...HOSTILE_JSON,
  ...HOSTILE_STRINGS,
  ...HOSTILE_PARAMETERS,
  ...HOSTILE_PATTERNS,
  ...HOSTILE_EXPRESSIONS,
  ...HOSTILE_WIDGETS,
  ...HOSTILE_DASHBOARDS,
];

/** A request that has a text, repeated until the place is full, and another one at its end. */
type Place = (piece: string, end: string) => HostileRequest;

const filled = (piece: string, end: string, chars: number): string => `${repeated(piece, chars - end.length)}${end}`;
/** Characters that need no encoding in a header or an address. */
const plain = (text: string): string => text.replace(/[^!-~]/g, '~');

/** Places that take any text. */
export const hostileWith: readonly Place[] = [
  (piece, end) => request('a body', 'POST', '/data/Account', filled(piece, end, BODY_BYTES / 4)),
  (piece, end) => request('a number', 'POST', '/data/Account', `{"name":1${filled(piece, end, BODY_BYTES / 4)}}`),
  (piece, end) =>
    request(
      'a long text',
      'POST',
      `/data/${COMPUTED}`,
      JSON.stringify({ name: 'hostile', Long__c: filled(piece, end, TEXT_CHARS) }),
    ),
  (piece, end) =>
    request(
      'a member',
      'POST',
      '/data/Account',
      JSON.stringify({ name: 'hostile', [filled(piece, end, TEXT_CHARS)]: 1 }),
    ),
  (piece, end) =>
    request(
      'an e-mail address',
      'POST',
      '/data/Contact',
      JSON.stringify({ lastName: 'hostile', email: filled(piece, end, 254) }),
    ),
  (piece, end) =>
    request(
      'a telephone number',
      'POST',
      '/data/Contact',
      JSON.stringify({ lastName: 'hostile', phone: filled(piece, end, 254) }),
    ),
  (piece, end) =>
    request(
      'a filter',
      'POST',
      '/data/Account/query',
      JSON.stringify(filters(condition('name', 'contains', filled(piece, end, TEXT_CHARS)))),
    ),
  (piece, end) =>
    run('a condition of a widget', 'names', () => ({
      conditions: [{ field: 'name', operator: 'eq', value: filled(piece, end, TEXT_CHARS) }],
    }))(),
  (piece, end) =>
    request('a search', 'POST', '/data/Account/query', JSON.stringify({ search: filled(piece, end, 200) })),
  (piece, end) =>
    request('a cursor', 'POST', '/data/Account/query', JSON.stringify({ cursor: filled(piece, end, TEXT_CHARS) })),
  (piece, end) =>
    request(
      'a sort',
      'POST',
      '/data/Account/query',
      JSON.stringify({ sort: [{ id: filled(piece, end, TEXT_CHARS) }] }),
    ),
  (piece, end) =>
    request(
      'an address',
      'GET',
      `/data/Account?${plain(filled(piece, end, ADDRESS_CHARS - 100)).replaceAll('#', '~')}`,
    ),
  (piece, end) =>
    request(
      'JSON in an address',
      'GET',
      `/data/Account?where=${encodeURIComponent(filled(piece, end, 1_500).toWellFormed())}`,
    ),
  (piece, end) =>
    request('If-Match', 'PUT', '/data/Account/by/accountNumber/hostile', '{"name":"hostile"}', {
      'if-match': plain(filled(piece, end, HEADER_CHARS)),
    }),
  (piece, end) => request('Accept', 'GET', '/objects', null, { accept: plain(filled(piece, end, HEADER_CHARS)) }),
  (piece, end) =>
    request('Content-Type', 'POST', '/data/Account', '{}', { 'content-type': plain(filled(piece, end, HEADER_CHARS)) }),
  (piece, end) => deployment('an expression', () => ruleFile('Any', filled(piece, end, EXPRESSION_CHARS)))(),
  (piece, end) =>
    deployment('a pattern', () =>
      fieldFile(COMPUTED, 'Any__c', `fieldType: text\npattern: ${JSON.stringify(filled(piece, end, PATTERN_CHARS))}`),
    )(),
];
