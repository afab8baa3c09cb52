/**
 * Random simultaneous requests of all users on the same few records of the demo tenant by every operation on records:
 * with ids that are valid, hidden, deleted or unknown, bodies that fit or do not, reused keys and outdated
 * versions. Every response is sound, complete and in time, and the stored state finally equals the responses.
 * RECORDS_SEED replays the requests of one run, RECORDS_RUNS sets how many there are.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { Random } from '../../service/expression/world.ts';
import { checkOf } from '../../support/check.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { findNothingWrong } from '../../support/consistency.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertSound, encoded, HANG_MS, PROTOTYPE_NAMES, SQL } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const seed = Number(process.env['RECORDS_SEED'] ?? Date.now() % 1_000_000_000);
const runs = Number(process.env['RECORDS_RUNS'] ?? 1_200);
const WORKERS = 8;

const OBJECTS = [
  'Account',
  'Contact',
  'Product',
  'Opportunity__c',
  'SalesOrder__c',
  'SalesOrderLine__c',
  'Invoice__c',
  'InvoiceLine__c',
  'Payment__c',
  'PriceListItem__c',
  'User',
];
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  Account: ['name', 'TaxId__c'],
  Contact: ['name', 'lastName', 'accountId'],
  Opportunity__c: ['name', 'AccountId__c'],
  SalesOrder__c: ['AccountId__c'],
  Invoice__c: ['AccountId__c', 'Amount__c'],
};
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  SalesOrder__c: ['submit', 'approve', 'reject', 'fulfill', 'close', 'cancel'],
  Invoice__c: ['send', 'pay', 'dispute', 'settle', 'cancel', 'SendReminder'],
};
const KEYS = [
  'submit',
  'approve',
  'reject',
  'fulfill',
  'close',
  'cancel',
  'send',
  'markOverdue',
  'pay',
  'dispute',
  'settle',
  'SendReminder',
];
const ODD: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  1e-300,
  Number.MAX_SAFE_INTEGER,
  '',
  ' ',
  'x',
  'x'.repeat(300),
  'x'.repeat(140_000),
  '2026-02-30',
  '9999-12-31',
  '0001-01-01',
  '2026-01-01T00:00:00Z',
  '12345678901234567890.12',
  [],
  [null],
  ['x', 'x'],
  [[]],
  {},
  { a: 1 },
  { name: 'x' },
  { accountNumber: 'AC-10001' },
  '\ud83d\ude42',
  'e\u0301',
  ...PROTOTYPE_NAMES,
  ...SQL.slice(0, 6),
];

/** Codes that always have a pointer, and their other required members. */
const WITH_ERRORS = new Set([
  'VALIDATION_FAILED',
  'TRANSITION_INPUT_INVALID',
  'FIELD_PERMISSION_DENIED',
  'BODY_PROPERTY_UNKNOWN',
  'PARAMETER_INVALID',
  'PARAMETER_UNKNOWN',
  'PARAMETER_REQUIRED',
  'UNIQUE_VALUE_CONFLICT',
  'CONFIRMATION_TOKEN_INVALID',
]);
const DETAILS: Readonly<Record<string, readonly string[]>> = {
  ETAG_MISMATCH: ['currentETag'],
  STATE_CONFLICT: ['allowed', 'currentState', 'reason'],
  DUPLICATE_RULE: ['confirmable', 'confirmationExpiresAt', 'confirmationToken', 'rules'],
  DELETE_RESTRICTED: ['dependents'],
  IDEMPOTENCY_KEY_REUSED: ['firstRequestId', 'firstSeenAt'],
  UNIQUE_VALUE_CONFLICT: ['field'],
};

/** Every violation is complete and points to a part of the request, or to a missing one. */
function assertComplete(answer: Answer, body: unknown, about: string): void {
  const { code, errors = [], details = {}, status } = answer.body;
  const shown = `${about} → ${answer.text.slice(0, 1_000)}`;
  if (WITH_ERRORS.has(code)) assert.ok(errors.length > 0, shown);
  for (const name of DETAILS[code] ?? []) assert.ok(Object.hasOwn(details, name), `${name}: ${shown}`);
  if (status === 403) assert.equal(typeof details.layer, 'string', shown);
  for (const error of errors) {
    assert.deepEqual(
      Object.keys(error).sort(),
      ['code', 'field', 'message', 'params', 'pointer', 'ruleApiName'],
      shown,
    );
    assert.match(error.code, /^[A-Z_]+$/, shown);
    assert.ok(error.message.length > 5, shown);
    assert.match(error.pointer, /^(?:$|\/|query:.|header:.|path:.)/s, shown);
    if (!error.pointer.startsWith('/')) continue;
    const parts = error.pointer
      .slice(1)
      .split('/')
      .map((part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    let at: Anything = body;
    for (const part of parts.slice(0, -1)) {
      at = typeof at === 'object' && at !== null && Object.hasOwn(at, part) ? at[part] : undefined;
      // Missing members, and members named by rules, may be absent from the body.
      assert.ok(
        at !== undefined || /^(VALIDATION_RULE|FIELD_REQUIRED)$/.test(error.code),
        `${error.pointer}: ${shown}`,
      );
    }
  }
}

interface Field {
  readonly apiName: string;
  readonly fieldType: string;
  readonly picklistValues: { value: string }[] | null;
  readonly referenceTo: string[];
}

describe(`bad input: records (RECORDS_SEED=${seed})`, () => {
  let platform: TestPlatform;
  const people: Record<string, Api> = {};
  const fields = new Map<string, readonly Field[]>();
  /** Ids by object, of records that at least one of them can see. */
  const ids = new Map<string, string[]>();
  const gone: string[] = [];
  const shares: string[] = [];
  const tokens: string[] = [];
  const cursors: string[] = [];
  const etags = new Map<string, string>();
  const used: [key: string, request: Sent][] = [];
  const outcomes = new Map<string, number>();
  const done = new Set<string>();
  const random = new Random(seed);
  const of = <T>(...items: readonly T[]): T => random.of(items);
  /** One of `items`, sometimes a foreign value. */
  const mostly = (...items: readonly unknown[]): unknown => (random.chance(0.1) ? of(...ODD) : of(...items));

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const name of ['sam', 'sue', 'mia', 'ada', 'eve'])
      people[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    for (const object of OBJECTS) {
      const { body } = await people['ada']!.get(`/objects/${object}/describe`);
      fields.set(object, body.fields);
      const found = new Set<string>();
      for (const who of ['sam', 'sue'])
        for (const { id } of (await people[who]!.get(`/data/${object}?take=4`)).body.records ?? []) found.add(id);
      ids.set(object, [...found]);
    }
  });
  after(() => platform?.stop());

  interface Sent {
    readonly who: string;
    readonly method: string;
    readonly path: string;
    readonly body?: unknown;
    readonly headers: Record<string, string>;
    readonly key: string;
  }

  const idOf = (object: string): string => {
    const own = ids.get(object) ?? [];
    return random.chance(0.85) && own.length > 0
      ? of(...own.slice(-6))
      : of(
          uuidv7(),
          ...gone.slice(-3),
          ...(ids.get(of(...OBJECTS)) ?? ['x']).slice(0, 2),
          'x',
          '0',
          'null',
          '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b2',
        );
  };

  function valueFor(field: Field): unknown {
    if (random.chance(0.06)) return of(...ODD);
    switch (field.fieldType) {
      case 'reference':
      case 'masterDetail':
        return idOf(field.referenceTo[0] ?? 'Account');
      case 'picklist':
        return of(...(field.picklistValues ?? []).map(({ value }) => value), 'none');
      case 'multiPicklist':
        return [of(...(field.picklistValues ?? []).map(({ value }) => value))];
      case 'boolean':
        return random.chance(0.5);
      case 'integer':
      case 'decimal':
      case 'currency':
      case 'percent':
        return of<unknown>(0, 1, 12.5, -3, '99.99', random.below(1_000));
      case 'date':
        return of('2026-01-31', '2024-02-29', '2031-12-31');
      case 'dateTime':
        return '2026-01-31T10:00:00Z';
      case 'time':
        return '10:30';
      case 'email':
        return `a${random.below(5)}@x.example`;
      case 'url':
        return 'https://x.example/';
      case 'address':
        return { city: 'Ulm' };
      default:
        return of('Acme', 'Acme GmbH', 'Müller', `T${random.below(9)}`, `AC-${1000 + random.below(5)}`);
    }
  }

  function bodyFor(object: string): unknown {
    if (random.chance(0.05)) return of<unknown>(undefined, [], 'x', '{"a":1,"a":2}', { [of(...PROTOTYPE_NAMES)]: 1 });
    const known = fields.get(object) ?? fields.get('Account')!;
    const needed = Object.hasOwn(NEEDED, object) ? NEEDED[object]! : [];
    const names = random.chance(0.6) ? needed : [];
    const chosen = [
      ...known.filter((field) => names.includes(field.apiName)),
      ...Array.from({ length: random.below(4) }, () => of(...known)),
    ];
    const body: Record<string, unknown> = Object.fromEntries(chosen.map((field) => [field.apiName, valueFor(field)]));
    if (random.chance(0.08))
      body[of('Nope__c', 'Bank__c', 'toString', '', 'a'.repeat(200), 'recordTypeApiName')] = of(...ODD);
    return body;
  }

  /** One request; it uses results of earlier ones. */
  function next(): Sent {
    if (used.length > 0 && random.chance(0.06)) {
      const [key, before] = of(...used.slice(-20));
      return random.chance(0.7) ? before : { ...before, key, path: `${before.path.split('?')[0]}`, body: {} };
    }
    const object = random.chance(0.97) ? of(...OBJECTS) : of('Nope__c', 'account', '_audit', 'constructor', "A'--");
    const at = `/data/${encoded(object)}/${encoded(idOf(object))}`;
    const id = at.split('/').at(-1)!;
    const etag = random.chance(0.8) ? (etags.get(id) ?? '"1"') : of('"1"', '"zz"', '*', 'W/"1"', '"1", "2"', '');
    const match: Record<string, string> = etag === '' ? {} : { 'if-match': etag };
    const confirm: Record<string, string> =
      tokens.length > 0 && random.chance(0.3) ? { 'x-duplicate-confirmation': of(...tokens.slice(-5)) } : {};
    const upsert = (): string =>
      `/data/${encoded(object)}/by/${of('accountNumber', 'accountNumber', 'name', 'email', 'id', 'Nope__c')}/${encoded(of<string>(`AC-${1000 + random.below(5)}`, 'x', '', '/', '%', "'", 'é'.repeat(50)))}`;
    const [method, path, body, headers = {}] = of<() => readonly [string, string, unknown?, Record<string, string>?]>(
      () => ['POST', `/data/${encoded(object)}`, bodyFor(object), confirm],
      () => ['POST', `/data/${encoded(object)}`, bodyFor(object), confirm],
      () => ['PATCH', `${at}`, bodyFor(object), { ...match, ...confirm }],
      () => ['PATCH', `${at}`, bodyFor(object), { ...match, ...confirm }],
      () => ['DELETE', `${at}`, undefined, match],
      () => ['POST', `${of(at, ...gone.slice(-4))}/restore`],
      () => [
        'PUT',
        `${upsert()}`,
        bodyFor(object),
        {
          ...confirm,
          ...of<Record<string, string>>({}, {}, match, { 'if-none-match': '*' }, { ...match, 'if-none-match': '*' }),
        },
      ],
      () => {
        const which = of(...Object.keys(ACTIONS));
        const record = idOf(which);
        const tag: Record<string, string> = { 'if-match': etags.get(record) ?? '"1"' };
        const path = `/data/${which}/${encoded(record)}`;
        return [
          'POST',
          `${path}/transitions/${of(...ACTIONS[which]!)}`,
          of<unknown>(undefined, {}, { comment: 'because' }, { input: { reason: 'other' }, comment: 'because' }),
          tag,
        ];
      },
      () => [
        'POST',
        `${at}/transitions/${encoded(random.chance(0.9) ? of(...KEYS) : of('Submit', 'toString', ' ', '__proto__'))}`,
        of<unknown>(
          undefined,
          {},
          { comment: 'because' },
          { input: { reason: 'other' } },
          { input: { reason: 1, more: 2 }, comment: 5 },
          { input: [], comment: 'x'.repeat(2_001) },
          { inputs: {} },
          { input: { shippedAt: of(...ODD) } },
          [],
        ),
        match,
      ],
      () => [
        'POST',
        `${at}/shares`,
        {
          principalType: mostly('user', 'role', 'group'),
          principalId: mostly(idOf('User'), 'SalesRep', 'DealDesk'),
          access: mostly('read', 'edit'),
          ...(random.chance(0.3) ? { reason: of(...ODD) } : {}),
        },
      ],
      () => ['DELETE', of(`${at}/shares/${of(uuidv7(), 'x')}`, ...shares.slice(-4))],
      () => ['GET', `${at}/shares`],
      () => [
        'POST',
        `${at}/access/explain`,
        {
          operation: mostly('read', 'create', 'update', 'delete', 'transition'),
          ...(random.chance(0.4)
            ? { field: mostly(of(...(fields.get(object) ?? fields.get('Account')!)).apiName) }
            : {}),
          ...(random.chance(0.4) ? { transitionKey: mostly(...KEYS) } : {}),
          ...(random.chance(0.2) ? { userId: mostly(idOf('User')) } : {}),
        },
      ],
      () => ['GET', `${at}/transitions`],
      () => [
        'GET',
        `${at}/history?take=${of('1', '200', '0', 'x')}${cursors.length > 0 && random.chance(0.3) ? `&cursor=${encoded(of(...cursors.slice(-6)))}` : ''}`,
      ],
      () => [
        'GET',
        `/data/${encoded(object)}/changes${cursors.length > 0 && random.chance(0.7) ? `?cursor=${encoded(of(...cursors.slice(-6)))}` : ''}`,
      ],
      () => [
        'GET',
        `/events/audit?${of('', 'recordId=', 'objectApiName=Account', 'outcome=denied', 'from=2026-13-01', 'operationId=x', `recordId=${id}`, 'take=3')}`,
      ],
      () => ['GET', `${at}?fields=${of('name', 'id,Status__c', 'Nope__c', '')}`],
    )();
    const sent = { who: of('sam', 'sam', 'sue', 'mia', 'mia', 'ada', 'eve'), method, path, body, headers };
    const change = method !== 'GET' && !/\/(shares|access)\b/.test(path);
    return { ...sent, ...(change && random.chance(0.15) ? checkOf(sent) : {}), key: randomUUID() };
  }

  /** Results that later requests can use. */
  function learn({ who, path, method, key }: Sent, answer: Answer): void {
    const { body } = answer;
    const object = decodeURIComponent(path.split(/[/?]/)[2] ?? '');
    const id = body?.record?.id ?? body?.id;
    const etag = answer.headers.get('etag') ?? body?.details?.currentETag;
    if (typeof etag === 'string') etags.set(id ?? path.split('/')[3]?.split('?')[0], etag);
    if (body?.details?.confirmationToken) tokens.push(body.details.confirmationToken);
    for (const cursor of [body?.nextCursor, body?.resumeCursor]) if (typeof cursor === 'string') cursors.push(cursor);
    if (body?.shareId) shares.push(`${path}/${body.shareId}`);
    if (method === 'GET' || answer.status >= 300 || /\/(check|explain)$/.test(path)) return;
    // An empty change leaves no trace, and eve works in another tenant.
    if (who !== 'eve' && (method === 'POST' || method === 'DELETE')) done.add(key);
    if (method === 'DELETE' && body?.deleted) {
      gone.push(path);
      ids.set(
        object,
        (ids.get(object) ?? []).filter((one) => one !== body.id),
      );
    } else if (typeof body?.id === 'string' && !ids.get(object)?.includes(body.id)) ids.get(object)?.push(body.id);
  }

  it(`is answered, ${runs} times, and stored as it was answered`, async function () {
    this.timeout(120_000 + runs * 200);
    let left = runs;
    const worker = async (): Promise<void> => {
      while (left-- > 0) {
        const sent = next();
        const about = `${sent.who} ${sent.method} ${sent.path.slice(0, 300)} ${JSON.stringify(sent.headers)} ${JSON.stringify(sent.body)?.slice(0, 500)}`;
        const began = performance.now();
        const mutation = sent.method !== 'GET' && !/\/(check|explain)$/.test(sent.path);
        if (mutation) used.push([sent.key, sent]);
        const answer = await people[sent.who]!.send(sent.method, sent.path, sent.body, {
          headers: sent.headers,
          idempotencyKey: mutation ? sent.key : null,
        });
        assert.ok(performance.now() - began < HANG_MS, `${about} took ${performance.now() - began} ms`);
        assertSound(answer, about);
        if (answer.status >= 400) assertComplete(answer, sent.body, about);
        learn(sent, answer);
        const what = `${sent.method} ${sent.path
          .replace(/\?.*/, '')
          .split('/')
          .filter(
            (part, index) => index < 2 || /^(by|restore|shares|transitions|check|explain|history|changes)$/.test(part),
          )
          .join('/')} ${answer.status} ${answer.status >= 400 ? answer.body.code : ''}`;
        outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, worker));
    if (process.env['RECORDS_RUNS'])
      console.log(
        [...outcomes]
          .sort()
          .map(([what, count]) => `${what}: ${count}`)
          .join('\n'),
      );
    const { body } = await people['ada']!.get('/identity');
    await findNothingWrong(platform.database.url, body.tenant.id, [...done]);
  });
});
