/**
 * Random rows under duplicate rules, written together into one object and one by one into another that is the same: every row
 * has the same outcome, with the same matches. Longer: DUPLICATES_RUNS=200, with DUPLICATES_SEED from a failure.
 */
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import { ROW_OPERATIONS, type RowsToWrite } from '../../../contracts/data/row-writes.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { requestId } from '../../../lib/values/ids.ts';
import type { Answer, Api, CallOptions } from '../../support/client.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { randomNumbers } from '../../support/random.ts';
import { type Deals, startDeals } from './deals.ts';

const RUNS = Number(process.env['DUPLICATES_RUNS'] ?? 12);
const SEED = Number(process.env['DUPLICATES_SEED'] ?? randomInt(1_000_000));

const TOGETHER = 'TogetherTwin__c';
const APART = 'ApartTwin__c';
const FIELDS: Record<string, string> = {
  Key__c: 'fieldType: text\nunique: true\nexternalId: true\nlength: 20',
  Tax__c: 'fieldType: text\nlength: 20',
  City__c: 'fieldType: text',
  Mail__c: 'fieldType: email',
  Rank__c: 'fieldType: decimal\nprecision: 6\nscale: 2',
  Secret__c: 'fieldType: text',
  AccountId__c: 'fieldType: reference\nreferenceTo:\n  - Account\nrelationshipName: %s\nonDelete: setNull',
};
const DUPLICATES_ON = 'features:\n  history: true\n  search: true\n  duplicates: true\n  events: true\n';

type Items = [field: string, method: string, weight: number][];
const RULES: Record<string, { rule: string; items: Items }> = {
  SameTax: { rule: 'action: confirm\nscope: visible\nthreshold: 1', items: [['Tax__c', 'normalized', 1]] },
  SameMail: { rule: 'action: block\nscope: all\nthreshold: 1', items: [['Mail__c', 'normalized', 1]] },
  NameAndCity: {
    rule: 'action: confirm\nscope: visible\nrevealHiddenCount: true\nthreshold: 0.75',
    items: [
      ['name', 'fuzzy', 3],
      ['City__c', 'normalized', 1],
    ],
  },
  AccountRank: {
    rule: 'action: block\nscope: visible\nthreshold: 1',
    items: [
      ['AccountId__c', 'exact', 1],
      ['Rank__c', 'exact', 1],
    ],
  },
  SecretCity: {
    rule: 'action: confirm\nscope: visible\nthreshold: 0.4',
    items: [
      ['Secret__c', 'exact', 1],
      ['City__c', 'exact', 2],
      ['Tax__c', 'exact', 2],
    ],
  },
};

const filesOf = (object: string, own: boolean): Record<string, string> => ({
  ...objectFiles(object, {}, `sharingDefault: private\n${DUPLICATES_ON}`),
  ...Object.assign(
    {},
    ...Object.entries(FIELDS).map(([name, yaml]) =>
      fieldFile(object, name, yaml.replace('%s', own ? 'Together__r' : 'Apart__r')),
    ),
  ),
  ...Object.fromEntries(
    Object.entries(RULES).map(([name, { rule, items }]) => [
      `objects/${object}/duplicateRules/${name}.yaml`,
      `type: DuplicateRule\napiName: ${name}\nobject: ${object}\nactive: true\n${rule}\nmatch:\n${items
        .map(([field, method, weight]) => `  - field: ${field}\n    method: ${method}\n    weight: ${weight}\n`)
        .join('')}`,
    ]),
  ),
});

interface Row {
  readonly id?: string;
  readonly ifMatch?: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The outcome of a row, without what differs between the objects. */
type Outcome = readonly unknown[];

describe(`random rows under duplicate rules (DUPLICATES_SEED=${SEED})`, function () {
  this.timeout(120_000 + RUNS * 10_000);
  let deals: Deals;
  let sam: Api;
  let accounts: { id: string; accountNumber: string }[];
  before(async () => {
    deals = await startDeals();
    ({ sam } = deals.as);
    const rights = '    create: true\n    read: true\n    update: true\n    delete: true\n';
    const names = Object.keys(FIELDS).filter((name) => name !== 'Secret__c');
    const both = [TOGETHER, APART];
    await deals.deploy({
      ...filesOf(TOGETHER, true),
      ...filesOf(APART, false),
      'permissionSets/Twins.yaml': `type: PermissionSet\napiName: Twins\nlabel: Twins\nobjects:\n${both.map((name) => `  ${name}:\n${rights}`).join('')}fields:\n${both.flatMap((object) => names.map((name) => `  ${object}.${name}:\n    read: true\n    edit: true\n`)).join('')}`,
    });
    for (const name of ['sam', 'sue'] as const)
      await deals.setUser(name, { permissionSetApiNames: ['Deals', 'Twins'] });
    accounts = (await sam.get('/data/Account?take=3&fields=id,accountNumber')).body.records;
    // Sam cannot see what Sue has.
    const below = randomNumbers(SEED);
    for (let n = 0; n < 6; n++) {
      const fields = fieldsOf(below, false);
      const replies = await Promise.all(both.map((object) => deals.as.sue.post(`/data/${object}`, fields)));
      assert.equal(new Set(replies.map(({ status }) => status)).size, 1);
    }
  });
  after(() => deals?.platform.stop());

  const WORDS = ['Nordwind', 'Suedwind', 'Hafen', 'Kontor', 'Werft', 'Handel', 'Logistik', 'Anker'];
  function fieldsOf(below: (n: number) => number, partly: boolean): Record<string, unknown> {
    const word = (): string => WORDS[below(WORDS.length)] ?? '';
    const account = accounts[below(accounts.length)];
    const named = below(2) ? account?.id : { accountNumber: account?.accountNumber };
    const all: Record<string, unknown> = {
      name: below(25) === 0 ? '' : `${word()} ${word()} ${word()} ${below(3) === 0 ? 'GmbH' : below(50)}`,
      Tax__c: [`DE ${below(40)}`, `de${below(40)}`, null][below(3)],
      City__c: ['Kiel', 'kiel!', 'Bremen', 'Emden', null][below(5)],
      Mail__c: below(3) === 0 ? `m${below(30)}@x.example` : null,
      Rank__c: below(25) === 0 ? 'high' : below(3) === 0 ? below(9) : null,
      AccountId__c: below(3) === 0 ? named : null,
    };
    return Object.fromEntries(
      Object.entries(all).filter(([name, value]) => (partly ? below(3) === 0 : name === 'name' || value !== null)),
    );
  }

  const records = async (object: string): Promise<Record<string, unknown>[]> =>
    (await sam.post(`/data/${object}/query`, { take: 1_000, includeEtag: true }, { idempotencyKey: null })).body
      .records;

  /** What is there, without ids. */
  const stateOf = async (object: string): Promise<string[]> =>
    (await records(object))
      .map((one) => JSON.stringify([...Object.keys(FIELDS), 'name', 'recordVersion'].map((name) => one[name] ?? null)))
      .sort();

  const rulesOf = (details: { rules?: unknown } | null | undefined, object: string): unknown[] =>
    ((details?.rules ?? []) as Answer['body'][]).map(({ ruleApiName, matches, hiddenMatchCount }) => [
      ruleApiName.replace(object, ''),
      // Ten of them are shown: which ones, ids decide.
      matches.length < 10 ? matches.map((match: { displayName: string }) => match.displayName).sort() : 'many',
      hiddenMatchCount,
    ]);

  async function oneByOne(operation: string, rows: readonly Row[], policy: string): Promise<Outcome[]> {
    const send = (row: Row, options: CallOptions): Promise<Answer> => {
      const etag = row.ifMatch === undefined ? {} : { etag: row.ifMatch };
      if (operation === 'create') return sam.post(`/data/${APART}`, row.fields, options);
      if (operation === 'update') return sam.patch(`/data/${APART}/${row.id}`, row.fields, { ...options, ...etag });
      return sam.put(`/data/${APART}/by/Key__c/${row.fields['Key__c']}`, row.fields, { ...options, ...etag });
    };
    const outcomes: Outcome[] = [];
    for (const row of rows) {
      let reply = await send(row, {});
      const shown = rulesOf(reply.body?.details, APART);
      const token = reply.body?.details?.confirmationToken;
      const isReported = policy === 'report' && typeof token === 'string';
      if (isReported) reply = await send(row, { headers: { 'X-Duplicate-Confirmation': token } });
      if (reply.status >= 400) {
        const { code, errors = [{ code }], details } = reply.body;
        outcomes.push([errors.map((one: { code: string }) => one.code), rulesOf(details, APART)]);
      } else outcomes.push(isReported ? [['DUPLICATE_RULE'], shown, 'stored'] : [[], [], 'stored']);
    }
    return outcomes;
  }

  /** As bulk jobs write them. */
  async function together(
    operation: RowsToWrite['operation'],
    rows: readonly Row[],
    duplicatePolicy: 'reject' | 'report',
  ): Promise<Outcome[]> {
    const { body } = await sam.get('/identity');
    const request: RequestContext = {
      requestId: requestId(),
      clientRequestId: null,
      tenantId: body.tenant.id,
      userId: deals.ids.sam,
      clientId: 'a job',
      grantId: randomUUID(),
      scopes: [],
      agent: false,
      person: true,
      agentRunId: null,
      tokenExpiresAt: null,
      ip: null,
      channel: 'job',
      deadline: Date.now() + 60_000,
    };
    const asked = {
      objectApiName: TOGETHER,
      operation,
      allOrNone: false,
      checkOnly: false,
      duplicatePolicy,
      ...(operation === 'upsert' ? { externalIdField: 'Key__c' } : {}),
      rows,
      key: randomUUID(),
    };
    const { results } = await call(deals.platform.broker, 'data.rows.write', asked, { meta: { request } });
    return results.map(({ errors, status }) => [
      errors.map(({ code }) => code),
      rulesOf(errors[0]?.detail, TOGETHER),
      ...(status < 400 ? ['stored'] : []),
    ]);
  }

  it('have the outcomes that they have one by one', async () => {
    const below = randomNumbers(SEED + 1);
    const seen = new Set<string>();
    for (let n = 0; n < RUNS; n++) {
      const operation = (n === 0 ? null : ROW_OPERATIONS[below(3)]) ?? 'create';
      const policy = below(3) === 0 ? 'report' : 'reject';
      const seed = below(2 ** 31);
      const rowsFor = async (object: string): Promise<Row[]> => {
        const own = randomNumbers(seed);
        const key = (): string => `k${own(60)}`;
        const known = new Map((await records(object)).map((one) => [one['Key__c'], one]));
        return Array.from({ length: 2 + own(40) }, (): Row => {
          const place = key();
          if (operation === 'create')
            return { fields: { ...fieldsOf(own, false), ...(own(2) ? { Key__c: place } : {}) } };
          if (operation === 'upsert') return { fields: { ...fieldsOf(own, own(2) === 0), Key__c: place } };
          const fields = fieldsOf(own, true);
          const record = known.get(place) ?? [...known].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))[0]?.[1];
          return { id: String(record?.['id']), ifMatch: String(record?.['_etag']), fields };
        });
      };
      const [rows, apart] = [await rowsFor(TOGETHER), await rowsFor(APART)];
      const outcomes = await together(operation, rows, policy);
      const expected = await oneByOne(operation, apart, policy);
      for (const [index, outcome] of outcomes.entries())
        assert.deepEqual(
          outcome,
          expected[index],
          `run ${n}, ${operation} ${policy}, row ${index}: ${JSON.stringify(rows)}`,
        );
      assert.deepEqual(await stateOf(TOGETHER), await stateOf(APART));
      for (const [codes] of outcomes) seen.add(`${operation} ${codes}`);
    }
    assert.ok(seen.has('create ') && seen.has('create DUPLICATE_RULE'), [...seen].join());
  });
});
