/**
 * Random rules, half of them invalid: state models, actions, sharing and duplicate rules, record types,
 * validation rules, formulas, rollups, roles and groups. Every deployment is either refused with complete problems,
 * or it is applied, and every operation on the object still gives a sound answer.
 * RULES_SEED replays one run, RULES_RUNS sets how many configurations are tried.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { parse as parseYaml } from 'yaml';
import { FIELDS, Random, randomExpression } from '../../service/expression/world.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertSound, HANG_MS, PROTOTYPE_NAMES } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form are made and bent here
type Anything = any;

const seed = Number(process.env['RULES_SEED'] ?? Date.now() % 1_000_000_000);
const runs = Number(process.env['RULES_RUNS'] ?? 60);

const OBJECT = 'Fuzz__c';
const CHILD = 'FuzzLine__c';
const ATTRIBUTES: Readonly<Record<string, string>> = {
  picklist: 'picklist: {values: [{value: Open, default: true}, {value: Closed}, {value: a}]}',
  multiPicklist: 'picklist: {values: [{value: x}, {value: y}, {value: a b}]}',
  reference: 'referenceTo: [Account]',
  text: 'length: 80',
  decimal: 'precision: 30\nscale: 15',
};
const NAMES = Object.keys(FIELDS).filter((name) => name !== 'id');
const fields = Object.fromEntries(
  NAMES.map((name) => [`${name}__c`, `fieldType: ${FIELDS[name]}\n${ATTRIBUTES[FIELDS[name]!] ?? ''}`]),
);
const WORLD: Readonly<Record<string, string>> = {
  ...objectFiles(
    OBJECT,
    { ...fields, Key__c: 'fieldType: text\nexternalId: true\nunique: true\nlength: 40' },
    'sharingDefault: private\nfeatures:\n  duplicates: true\n  events: true\n  history: true\n',
  ),
  ...objectFiles(CHILD, {
    Parent__c: `fieldType: masterDetail\nreferenceTo: [${OBJECT}]`,
    Other__c: `fieldType: reference\nreferenceTo: [${OBJECT}]\nrelationshipName: Others__r`,
    Up__c: `fieldType: reference\nreferenceTo: [${CHILD}]\nrelationshipName: Downs__r`,
    Amount__c: 'fieldType: currency',
    Day__c: 'fieldType: date',
    Status__c: ATTRIBUTES['picklist']!.replace(/^/, 'fieldType: picklist\n'),
  }),
  'roles/Top.yaml': 'type: Role\napiName: Top\nlabel: Top\n',
  'roles/R1.yaml': 'type: Role\napiName: R1\nlabel: R\nparent: Top\n',
  'roles/R2.yaml': 'type: Role\napiName: R2\nlabel: R\nparent: R1\n',
  'groups/G1.yaml': 'type: Group\napiName: G1\nlabel: G\n',
  'groups/G2.yaml': 'type: Group\napiName: G2\nlabel: G\n',
  ...Object.fromEntries(
    ['A1', 'A2'].map((name) => [
      `objects/${OBJECT}/actions/${name}.yaml`,
      `type: CustomAction\napiName: ${name}\nobject: ${OBJECT}\nlabel: Act\n`,
    ]),
  ),
  'permissionSets/Fuzzers.yaml': `type: PermissionSet\napiName: Fuzzers\nlabel: F\nactions:\n  - ${OBJECT}.A1\n  - ${OBJECT}.A2\n`,
};

/** Results that expressions may have. */
const VALUES: Readonly<Record<string, Parameters<typeof randomExpression>[1]>> = {
  Name: 'text',
  Other: 'text',
  Notes: 'text',
  Amount: 'number',
  Rate: 'number',
  Exact: 'number',
  Count: 'number',
  Flag: 'boolean',
  Day: 'date',
  At: 'dateTime',
  Tags: 'list',
};

/** Values of unexpected kinds. */
const ODD: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  5e-324,
  Number.MAX_SAFE_INTEGER + 1,
  '',
  ' ',
  '__c',
  'a'.repeat(41),
  'x'.repeat(5_000),
  'Nothing__c',
  'ä__c',
  OBJECT,
  CHILD,
  'Account',
  'User',
  'name',
  'id',
  'ownerId',
  'recordTypeApiName',
  'recordVersion',
  [],
  [null],
  [[]],
  {},
  { a: 1 },
  ['x', 'x'],
  "'; DROP TABLE x; --",
  '\u0000',
  '\ud83d\ude42'.repeat(30),
  'record.Nope__c > 1',
  ...PROTOTYPE_NAMES,
];

class Maker {
  readonly random: Random;
  constructor(random: Random) {
    this.random = random;
  }
  of<T>(...items: readonly T[]): T {
    return this.random.of(items);
  }
  maybe(part: number, body: object): object {
    return this.random.chance(part) ? body : {};
  }
  field(): string {
    return this.of(
      ...NAMES.map((name) => `${name}__c`),
      'name',
      'ownerId',
      'Key__c',
      'F1__c',
      'F2__c',
      'U1__c',
      'U2__c',
      'createdAt',
    );
  }
  expression(type: Parameters<typeof randomExpression>[1] = 'boolean'): string {
    if (this.random.chance(0.08))
      return this.of(
        '1 / 0 > 0',
        'record',
        'record.',
        'record.name == ',
        'old.name != record.name',
        'input.a == 1',
        '((((',
        '"',
        'user.id == record.ownerId',
        'isChanged(record.name)',
        'inGroup("G1")',
        'hasPermission("viewAudit")',
        'record.F1__c == record.F2__c',
        '[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, [1,2,3].all(d, a + b + c + d > 0))))',
        'true '.repeat(700),
        `${'!'.repeat(300)}true`,
        `${'('.repeat(250)}true${')'.repeat(250)}`,
        Array(500).fill('true').join(' && '),
        'record.Notes__c.matches("(a?){200}")',
        'record.U1__c > 1',
        'record["name"] == "x"',
        'record.constructor == null',
        'today > now',
        'record.Data__c == null',
        '/* */ true',
        '// x',
      );
    const source = randomExpression(this.random, type, 1 + this.random.below(4));
    return source.replaceAll(/\brecord\.([A-Z]\w*)/g, 'record.$1__c');
  }
  /** Values for some fields, mostly of their types. */
  values(): object {
    return Object.fromEntries(
      Array.from({ length: 1 + this.random.below(3) }, () => {
        const name = this.of(...Object.keys(VALUES));
        return [`${name}__c`, this.expression(this.random.chance(0.05) ? 'list' : VALUES[name]!)];
      }),
    );
  }
  effects(): object[] {
    return Array.from({ length: this.random.below(4) }, () =>
      this.of<() => object>(
        () => ({ verb: 'updateFields', fields: this.values() }),
        () => ({
          verb: 'createRecord',
          object: CHILD,
          fields: { name: '"made"', Parent__c: 'record.id', ...this.maybe(0.5, { Amount__c: 'record.Amount__c' }) },
        }),
        () => ({
          verb: 'createRecord',
          object: this.of(OBJECT, 'Account', 'User'),
          fields: { name: this.of('record.name', '"x"'), ...this.maybe(0.3, this.values()) },
        }),
        () => ({
          verb: this.of('sendNotification', 'emitEvent', 'requestApproval', 'runScript'),
          type: 'Told',
          to: this.of('owner', 'actor', 'Ref__c', 'createdById', 'nobody'),
          ...this.maybe(0.3, { data: { a: this.expression('text'), b: this.expression('number') } }),
        }),
      )(),
    );
  }
  input(): object {
    const property = (): object =>
      this.of<object>(
        { type: 'string' },
        { type: 'string', maxLength: 5 },
        { type: 'string', format: 'date' },
        { type: 'string', pattern: '^[a-z]+$' },
        { type: 'string', pattern: '(a+)+$' },
        { type: 'number', minimum: 0 },
        { type: 'integer', multipleOf: 0.01 },
        { type: 'boolean' },
        { type: 'array', items: { type: 'string' }, maxItems: 3 },
        { type: 'array', uniqueItems: true },
        { enum: ['a', 1, null] },
        { $ref: '#' },
        { type: 'object', properties: { x: { type: 'string' } } },
        { oneOf: [{ type: 'string' }, { type: 'number' }] },
        { type: ['string', 'null'] },
        { type: 'wrong' },
        { not: {} },
        { if: { type: 'string' }, else: { type: 'null' } },
      );
    return { type: 'object', properties: { a: property(), b: property() }, ...this.maybe(0.3, { required: ['a'] }) };
  }
  part(): object {
    return {
      label: 'Do it',
      ...this.maybe(0.5, { guard: this.expression() }),
      ...this.maybe(0.2, { guardMessage: 'No.' }),
      ...this.maybe(0.2, { input: this.input() }),
      ...this.maybe(0.3, { requiresComment: true }),
      ...this.maybe(0.2, { permission: `${OBJECT}.go` }),
      effects: this.effects(),
    };
  }

  /** A plausible component: its path and its body. */
  component(): [path: string, body: Anything] {
    const own = (folder: string, type: string, apiName: string, body: object): [string, Anything] => [
      `objects/${OBJECT}/${folder}/${apiName}.yaml`,
      { type, apiName, object: OBJECT, ...body },
    ];
    const number = 1 + this.random.below(2);
    return this.of<() => [string, Anything]>(
      () =>
        own('validationRules', 'ValidationRule', `V${number}`, {
          active: this.random.chance(0.7),
          condition: this.random.chance(0.2) ? this.expression() : `record.name == "refused" && ${this.expression()}`,
          message: 'No.',
          ...this.maybe(0.5, { errorField: this.field() }),
        }),
      () =>
        own('sharingRules', 'SharingRule', `S${number}`, {
          ...this.of<object>(
            { kind: 'owner', from: this.of({ role: 'Top' }, { group: 'G1' }) },
            { kind: 'criteria', criteria: this.expression() },
          ),
          to: this.of<object>({ role: 'Top' }, { group: 'G1' }, { group: 'G2' }, {}),
          access: this.of('read', 'readWrite'),
        }),
      () =>
        own('duplicateRules', 'DuplicateRule', `D${number}`, {
          action: this.of('confirm', 'block'),
          scope: this.of('visible', 'all'),
          ...this.maybe(0.5, { revealHiddenCount: true }),
          threshold: this.of(1, 0.5, 0.001, 1e-300),
          match: Array.from({ length: 1 + this.random.below(3) }, () => ({
            field: this.field(),
            method: this.of('exact', 'normalized', 'fuzzy'),
            weight: this.of(1, 3, 1_000, 1e-300, 5e-324),
          })),
        }),
      () =>
        own('stateModels', 'StateModel', `M${number}`, {
          field: this.of('Status__c', 'Status__c', 'Status__c', this.field()),
          initial: this.of('Open', 'Open', 'Open', 'a', 'Nope'),
          ...this.maybe(0.3, { allowDirectEdit: true }),
          ...this.maybe(0.3, { active: false }),
          transitions: [
            { key: 'go', from: ['Open'], to: 'Closed', ...this.part() },
            {
              key: this.of('back', 'go', 'A1', 'stay'),
              from: this.of(['Closed'], ['Closed', 'a'], []),
              to: this.of('Open', 'Closed', 'a'),
              ...this.part(),
            },
          ],
        }),
      () => own('actions', 'CustomAction', `A${number}`, this.part()),
      () =>
        own('recordTypes', 'RecordType', `R${number}`, {
          label: 'Kind',
          ...this.maybe(0.3, { active: false }),
          ...this.maybe(0.3, { default: true }),
          ...this.maybe(0.7, {
            picklistValues: {
              [this.of('Status__c', 'Tags__c', this.field())]: [
                this.of('Open', 'Closed', 'x', 'Nope'),
                this.of('a', 'y'),
              ],
            },
          }),
        }),
      () => {
        const resultType = this.of('text', 'integer', 'decimal', 'currency', 'percent', 'boolean', 'date', 'dateTime');
        const wanted =
          resultType === 'text' || resultType === 'boolean' || resultType === 'date' || resultType === 'dateTime'
            ? resultType
            : 'number';
        // One type for each name: that of a formula never changes.
        return own('fields', 'CustomField', `F_${resultType}_${number}__c`, {
          label: 'Formula',
          fieldType: 'formula',
          formula: { expression: this.expression(wanted), resultType },
        });
      },
      () => {
        const of = this.of('count', 'sum', 'min', 'max', 'avg');
        return own('fields', 'CustomField', `U_${of}_${number}__c`, {
          label: 'Rollup',
          fieldType: 'rollup',
          ...this.maybe(0.2, { precision: this.of(30, 5), scale: this.of(0, 2, 15) }),
          rollup: {
            childObject: this.of(CHILD, CHILD, OBJECT, 'Account'),
            referenceField: this.of('Parent__c', 'Other__c', 'Up__c', 'Ref__c'),
            function: of,
            ...this.maybe(of === 'count' ? 0.1 : 0.9, {
              field: this.of('Amount__c', 'Day__c', 'Status__c', 'createdAt', `F_decimal_${number}__c`, 'F_date_1__c'),
            }),
            ...this.maybe(0.3, {
              criteria: this.of(
                'record.Amount__c > 1',
                'record.Status__c == "Open"',
                '1 / 0 > record.Amount__c',
                'record.Day__c < today',
                `record.F_boolean_${number}__c`,
                this.expression(),
              ),
            }),
          },
        });
      },
      () => {
        const name = this.of(...NAMES);
        const fieldType = this.random.chance(0.5) ? FIELDS[name]! : this.of(...Object.values(FIELDS));
        return own('fields', 'CustomField', `${name}__c`, {
          label: 'Changed',
          fieldType,
          ...parseYaml(ATTRIBUTES[fieldType] ?? ''),
          ...this.maybe(0.3, { required: true }),
          ...this.maybe(0.2, { unique: true }),
          ...this.maybe(0.2, { externalId: true }),
          ...this.maybe(0.2, { length: this.of(1, 20, 300) }),
          ...this.maybe(0.2, { precision: this.of(5, 20), scale: this.of(0, 4) }),
          ...this.maybe(0.2, { defaultValue: this.of(...ODD) }),
        });
      },
      () => [
        `roles/R${number}.yaml`,
        {
          type: 'Role',
          apiName: `R${number}`,
          label: 'Role',
          ...this.maybe(0.8, { parent: this.of('R1', 'R2', 'Top', 'Nobody') }),
        },
      ],
      () => [
        `groups/G${number}.yaml`,
        {
          type: 'Group',
          apiName: `G${number}`,
          label: 'Group',
          members: {
            ...this.maybe(0.7, { groups: [this.of('G1', 'G2')] }),
            ...this.maybe(0.5, { roles: [this.of('Top', 'R1', 'Nobody')] }),
            ...this.maybe(0.5, { users: ['eve@acme.example', 'nobody'] }),
          },
        },
      ],
    )();
  }

  /** Replaces, removes or adds something anywhere in `value`. */
  bend(value: Anything): Anything {
    if (typeof value !== 'object' || value === null || this.random.chance(0.15)) return this.of(...ODD);
    const copy = Array.isArray(value) ? [...value] : { ...value };
    const keys = Object.keys(copy);
    if (keys.length === 0 || this.random.chance(0.1)) {
      if (Array.isArray(copy)) copy.push(this.of(...ODD));
      else copy[this.of('extra', 'active', 'name', 'constructor', 'toString')] = this.of(...ODD);
      return copy;
    }
    const key = this.of(...keys) as never;
    if (this.random.chance(0.1)) delete copy[key];
    else copy[key] = this.bend(copy[key]);
    return copy;
  }
}

/** JSON is YAML; NUL and lone surrogates are covered by the tests of bodies. */
const yaml = (body: unknown): string => JSON.stringify(body).replaceAll('\\u0000', '');

const PROBLEM_KEYS = ['code', 'column', 'fullName', 'line', 'message', 'path', 'remedy', 'type'];

function assertProblems(problems: readonly Anything[], files: object, about: string): void {
  for (const problem of problems) {
    const shown = `${about}\n${JSON.stringify(problem)}`;
    assert.deepEqual(
      Object.keys(problem)
        .filter((key) => key !== 'details')
        .sort(),
      PROBLEM_KEYS,
      shown,
    );
    assert.match(problem.code, /^[A-Z_]+$/, shown);
    assert.ok(problem.message.length > 5 && problem.message.length < 1_500, shown);
    assert.equal(problem.line === null, problem.column === null, shown);
    // Other violations caused by the change are in no file of the project.
    const hasPlace = problem.code === 'EXPRESSION_INVALID' || problem.code === 'YAML_SCHEMA_INVALID';
    if (hasPlace && Object.hasOwn(files, problem.path)) assert.ok(problem.line >= 1, shown);
  }
}

describe(`bad input: rules (RULES_SEED=${seed})`, () => {
  let platform: TestPlatform;
  let eve: Api;
  const random = new Random(seed);
  const maker = new Maker(random);
  const outcomes = new Map<string, number>();
  const note = (what: string): void => void outcomes.set(what, (outcomes.get(what) ?? 0) + 1);

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    const { body } = await deploy(WORLD);
    assert.equal(body.status, 'SUCCEEDED', JSON.stringify([body.error, body.blocked]));
    const { user } = (await eve.get('/identity')).body;
    const { headers } = await eve.get(`/data/User/${user.id}`);
    const given = await eve.patch(
      `/data/User/${user.id}`,
      { permissionSetApiNames: ['Fuzzers', 'OrderDesk'] },
      { etag: headers.get('etag')! },
    );
    assert.equal(given.status, 200, given.text);
    const made = await eve.post(`/data/${OBJECT}`, { name: 'first' });
    assert.equal(made.status, 201, made.text);
  });
  after(() => platform?.stop());

  async function timed(what: string, work: () => Promise<Answer>): Promise<Answer> {
    const begun = performance.now();
    const answer = await work();
    const took = performance.now() - begun;
    assert.ok(took < HANG_MS, `${what} took ${Math.round(took)} ms`);
    try {
      assertSound(answer, what.split('\n').at(-1)!);
    } catch (error) {
      throw new Error(what, { cause: error });
    }
    return answer;
  }

  async function deploy(files: Readonly<Record<string, string>>): Promise<Answer> {
    const accepted = await eve.post('/metadata/deploy', { files, package: wholePackage(files) });
    assert.equal(accepted.status, 202, accepted.text);
    for (;;) {
      const answer = await eve.get(`/metadata/deployments/${accepted.body.deploymentId}`);
      if (['SUCCEEDED', 'FAILED', 'CANCELED'].includes(answer.body.status)) return answer;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Every user's daily operations on the object: none may fail, whatever the rules are. */
  async function use(about: string): Promise<void> {
    const ask = async (method: string, path: string, body?: unknown, etag?: string): Promise<Answer> => {
      const answer = await timed(`${about}\n${method} ${path} ${JSON.stringify(body) ?? ''}`, () =>
        eve.send(method, path, body, etag ? { etag } : {}),
      );
      note(
        `${method} ${path.replace(/[0-9a-f-]{36}/g, '…').replace(/\?.*/, '')} ${answer.status}${answer.status >= 400 ? ` ${answer.body.code}` : ''}`,
      );
      return answer;
    };
    await ask('GET', `/objects/${OBJECT}/describe`);
    await ask('GET', `/objects/${OBJECT}/schema.json`);
    const list = await ask('GET', `/data/${OBJECT}?take=5&includeTotal=true&includeEtag=true`);
    assert.equal(list.status, 200, list.text);
    for (const field of maker.of(Object.keys(list.body.records[0] ?? {})).slice(-3))
      if (!field.startsWith('_')) await ask('GET', `/data/${OBJECT}?take=2&orderBy=${field}`);
    const body = {
      name: maker.of('first', 'second'),
      Name__c: maker.of('a', 'Straße', null),
      Amount__c: maker.of(0, 12.5, null),
      Count__c: maker.of(0, 3),
      Day__c: '2026-01-31',
      Tags__c: ['x'],
      Flag__c: true,
    };
    await ask('POST', `/data/${OBJECT}/check`, { operation: 'create', fields: body });
    await ask('POST', `/data/${OBJECT}`, body);
    const record = list.body.records[0];
    if (!record) return;
    const at = `/data/${OBJECT}/${record.id}`;
    await ask('PATCH', at, { Count__c: random.below(5), Amount__c: maker.of('0', '99999.99') }, record._etag);
    await ask('PUT', `/data/${OBJECT}/by/Key__c/K${random.below(3)}`, body);
    await ask('POST', `/data/${CHILD}`, {
      name: 'line',
      Parent__c: record.id,
      Other__c: record.id,
      Amount__c: maker.of(1, -5, 9_999_999.99),
      Day__c: '2026-02-28',
    });
    const { body: ways } = await ask('GET', `${at}/transitions`);
    for (const way of ways.records ?? []) {
      const input = maker.of<unknown>(undefined, {}, { a: 'x', b: 1 }, { a: '2026-01-01' });
      const path = `${at}/transitions/${way.transitionKey}`;
      const etag = (await eve.get(at)).headers.get('etag') ?? '"1"';
      const comment = maker.of<unknown>(undefined, 'because');
      const check = { operation: 'transition', id: record.id, transitionKey: way.transitionKey, ifMatch: etag };
      await ask('POST', `/data/${OBJECT}/check`, { ...check, input, comment });
      await ask('POST', path, { input, comment }, etag);
      await ask('POST', `${at}/access/explain`, { operation: 'transition', transitionKey: way.transitionKey });
    }
    await ask('POST', `${at}/access/explain`, { operation: 'update', field: maker.field() });
    await ask('GET', `${at}/history`);
    await ask('GET', `/data/${OBJECT}/changes`);
    if (list.body.records.length > 3) {
      const { headers } = await eve.get(at);
      await ask('DELETE', at, undefined, headers.get('etag')!);
      await ask('POST', `${at}/restore`);
    }
  }

  it(`are refused completely or work, ${runs} times`, async function () {
    this.timeout(120_000 + runs * 10_000);
    for (let run = 0; run < runs; run++) {
      const files: Record<string, string> = {};
      for (let count = 1 + random.below(3); count > 0; count--) {
        const [path, body] = maker.component();
        files[path] = yaml(random.chance(0.25) ? maker.bend(body) : body);
      }
      const about = `run ${run} of RULES_SEED=${seed}: ${Object.entries(files)
        .map(([path, text]) => `${path} ${text.slice(0, 2_000)}`)
        .join('\n')}`;
      const validation = await timed(about, () =>
        eve.post('/metadata/validate', { files, package: wholePackage(files) }),
      );
      if (validation.status !== 200) {
        note(`validate ${validation.body.code}`);
        continue;
      }
      assertProblems([...validation.body.blocked, ...validation.body.warnings], files, about);
      assert.equal(validation.body.valid, validation.body.blocked.length === 0, about);
      for (const { code } of validation.body.blocked) note(`blocked ${code}`);
      if (!validation.body.valid) continue;
      const { body } = await deploy(files);
      assert.equal(body.status, 'SUCCEEDED', `${about}\n${JSON.stringify([body.error, body.blocked])}`);
      note(`deployed ${body.changes.creates.length + body.changes.updates.length > 0 ? 'a change' : 'nothing new'}`);
      await use(about);
    }
    if (process.env['RULES_RUNS'])
      console.log(
        [...outcomes]
          .sort()
          .map(([what, count]) => `${what}: ${count}`)
          .join('\n'),
      );
  });
});
