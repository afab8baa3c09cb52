/**
 * An update has two implementations with indistinguishable results. Every object here is there twice: one of the two has a
 * rule that never refuses, for which its updates go step by step. docs/reference/records.md
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { createWorld, type Person, type World } from './world.ts';

const TWINS = ['Quick', 'Slow'] as const;
type Twin = (typeof TWINS)[number];

const picklist = (values: readonly string[], more = ''): string =>
  `fieldType: picklist\npicklist:\n  restricted: true\n${more}  values:\n${values.map((value) => `    - value: ${value}\n`).join('')}`;

const FIELDS: Readonly<Record<string, string>> = {
  Key__c: 'fieldType: text\nunique: true\nexternalId: true\nlength: 40\n',
  Exact__c: 'fieldType: text\nunique: true\ncaseSensitive: true\n',
  Outer__c: 'fieldType: integer\nexternalId: true\n',
  Needed__c: 'fieldType: text\nrequired: true\ndefaultValue: there\n',
  camelCase__c: 'fieldType: text\nlength: 10\n',
  Decimal__c: 'fieldType: decimal\nprecision: 10\nscale: 3\n',
  Money__c: 'fieldType: currency\nprecision: 18\nscale: 2\n',
  Share__c: 'fieldType: percent\nprecision: 5\nscale: 2\n',
  Count__c: 'fieldType: integer\n',
  Flag__c: 'fieldType: boolean\n',
  Day__c: 'fieldType: date\n',
  When__c: 'fieldType: dateTime\n',
  Clock__c: 'fieldType: time\n',
  Span__c: 'fieldType: duration\n',
  Kind__c: picklist(['a', 'b', 'c']),
  Sub__c: `fieldType: picklist\npicklist:\n  restricted: true\n  controllingField: Kind__c\n  values:\n    - value: a1\n      validFor:\n        - a\n    - value: any\n`,
  Stage__c: picklist(['new', 'done']),
  Typed__c: picklist(['x', 'y']),
  Tags__c: picklist(['x', 'y', 'z']).replace('picklist', 'multiPicklist'),
  Mail__c: 'fieldType: email\n',
  Phone__c: 'fieldType: phone\n',
  Site__c: 'fieldType: url\n',
  Long__c: 'fieldType: longText\n',
  Rich__c: 'fieldType: richText\n',
  Data__c: 'fieldType: json\n',
  Place__c: 'fieldType: geolocation\n',
  Home__c: 'fieldType: address\n',
  Friend__c: 'fieldType: reference\nreferenceTo:\n  - Company__c\nonDelete: setNull\n',
  Fixed__c: 'fieldType: text\n',
  Hidden__c: 'fieldType: text\n',
  Double__c:
    'fieldType: formula\nformula:\n  expression: record.Money__c * 2\n  resultType: decimal\nprecision: 18\nscale: 2\n',
};

const object = (apiName: string, sharing: string, kept: boolean): string =>
  `type: CustomObject\napiName: ${apiName}\nlabel: ${apiName}\nlabelPlural: ${apiName}\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: ${sharing}\napi:\n  published: true\nfeatures:\n  history: ${kept}\n  events: ${kept}\n  search: true\n`;

/** One object, twice; `kind` names the pair. */
function twins(kind: string, sharing: string, kept: boolean, more: (name: string) => Record<string, string>) {
  const files: Record<string, string> = {};
  for (const twin of TWINS) {
    const name = `${twin}${kind}__c`;
    files[`objects/${name}/object.yaml`] = object(name, sharing, kept);
    for (const [field, yaml] of Object.entries(FIELDS))
      files[`objects/${name}/fields/${field}.yaml`] =
        `type: CustomField\napiName: ${field}\nobject: ${name}\nlabel: ${field}\n${yaml}`;
    Object.assign(files, more(name));
  }
  files[`objects/Slow${kind}__c/validationRules/Never.yaml`] =
    `type: ValidationRule\napiName: Never\nobject: Slow${kind}__c\nactive: true\ncondition: record.recordVersion < 0\nmessage: Never.\n`;
  return files;
}

const KINDS = ['Plain', 'Read', 'Typed', 'Child'] as const;

const FILES = {
  ...twins('Plain', 'readWrite', true, () => ({})),
  ...twins('Read', 'read', false, (name) => ({
    [`objects/${name}/stateModels/Life.yaml`]: `type: StateModel\napiName: Life\nobject: ${name}\nfield: Stage__c\ninitial: new\nallowDirectEdit: false\ntransitions:\n  - key: end\n    label: End\n    from:\n      - new\n    to: done\n`,
  })),
  ...twins('Typed', 'private', true, (name) => ({
    [`objects/${name}/recordTypes/Some.yaml`]: `type: RecordType\napiName: Some\nobject: ${name}\nlabel: Some\ndefault: true\npicklistValues:\n  Typed__c:\n    - x\n`,
    [`objects/${name}/recordTypes/Other.yaml`]: `type: RecordType\napiName: Other\nobject: ${name}\nlabel: Other\n`,
    [`objects/${name}/stateModels/Life.yaml`]: `type: StateModel\napiName: Life\nobject: ${name}\nfield: Stage__c\ninitial: new\nallowDirectEdit: true\ntransitions:\n  - key: end\n    label: End\n    from:\n      - new\n    to: done\n`,
  })),
  'objects/Root__c/object.yaml': object('Root__c', 'read', true),
  ...twins('Child', 'controlledByParent', true, (name) => ({
    [`objects/${name}/fields/RootId__c.yaml`]: `type: CustomField\napiName: RootId__c\nobject: ${name}\nlabel: Root\nfieldType: masterDetail\nreferenceTo:\n  - Root__c\nrelationshipName: ${name.replace('__c', 's')}__r\nonDelete: cascade\n`,
  })),
};

const OBJECTS = KINDS.flatMap((kind) => TWINS.map((twin) => `${twin}${kind}__c`));
const RIGHTS = ['create', 'read', 'update', 'delete'];
const rights = (given: readonly string[]): string =>
  [...RIGHTS, 'viewAll', 'modifyAll'].map((right) => `    ${right}: ${given.includes(right)}\n`).join('');
/** Permissions of the clerk; the reader may only read. */
const permissions = (apiName: string, given: readonly string[]): string =>
  `type: PermissionSet\napiName: ${apiName}\nlabel: ${apiName}\nobjects:\n${[...OBJECTS, 'Root__c'].map((name) => `  ${name}:\n${rights(given)}`).join('')}fields:\n${OBJECTS.flatMap(
    (name) =>
      [...Object.keys(FIELDS), ...(name.includes('Child') ? ['RootId__c'] : [])]
        .filter((field) => field !== 'Hidden__c' && field !== 'Needed__c')
        .map(
          (field) =>
            `  ${name}.${field}:\n    read: true\n    edit: ${field !== 'Fixed__c' && field !== 'Double__c' && given.includes('update')}\n`,
        ),
  ).join('')}`;

const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  name: ['Ann', 'ann', 'Ärger', ' spaced ', '', null, 7],
  Key__c: ['taken', 'TAKEN', 'free', 'Free', null],
  Exact__c: ['taken', 'TAKEN', 'free'],
  Outer__c: [7, 8, null],
  Needed__c: ['there', 'else', null, ' '],
  camelCase__c: ['short', 'much too long', 'ÄÖÜäöüßéèê'],
  Decimal__c: ['1.500', 1.5, '1.5', 9999999.999, '10000000', 0.0005, -0, 0, null, 'x'],
  Money__c: [5, '5.00', '5.0', '9999999999999999.99', '99999999999999999', 1e-3, null, new ExactNumber('0.10')],
  Share__c: [12.5, '12.50', 1000, null],
  Count__c: [1, '1', 9007199254740991, '9223372036854775807', '9223372036854775808', 1.5, null],
  Flag__c: [true, false, null, 'true'],
  Day__c: ['2001-02-03', '2001-02-30', '0001-01-01', '2001-02-03T00:00:00Z', null],
  When__c: ['2001-02-03T04:05:06Z', '2001-02-03T05:05:06+01:00', '2001-02-03T04:05:06.789123Z', null, 'x'],
  Clock__c: ['09:30', '09:30:00.000', '23:59:59.9995', '24:00', null],
  Span__c: ['P30D', 'P1M', 'PT24H', 'P1D', 'P1W', 'P7D', 'PT0.1234567S', null],
  Kind__c: ['a', 'b', 'z', null],
  Sub__c: ['a1', 'any', null],
  Stage__c: ['new', 'done', null],
  Typed__c: ['x', 'y', null],
  recordTypeApiName: ['Some', 'Other', 'None', null],
  Tags__c: [['x'], ['y', 'x'], ['x', 'y'], [], ['x', 'x'], ['q'], 'x', null],
  Mail__c: ['A@Example.org', 'a@example.org', 'none', null],
  Phone__c: ['+49 30 1234', 'x', null],
  Site__c: ['https://example.org/a?b', 'nope', null],
  Long__c: ['a\nb', `x'"\\$1 {}`, null],
  Rich__c: ['<p>a</p>', '<script>a</script>', null],
  Data__c: [{ a: 1, b: [1] }, { b: [1], a: 1 }, { a: new ExactNumber('1.0'), b: [1] }, 'text', [], false, null],
  Place__c: [{ latitude: 1.5, longitude: 2 }, { latitude: 91, longitude: 2 }, null],
  Home__c: [{ city: 'Bonn' }, { city: 'Bonn', country: 'DE' }, { planet: 'Mars' }, null],
  Friend__c: ['$company', { Code__c: 'FRIEND' }, '01890000-0000-7000-8000-000000000000', null],
  RootId__c: ['$mine', '$theirs', null],
  Fixed__c: ['a', null],
  Hidden__c: ['a', null],
  Double__c: [1],
  ownerId: ['$clerk', '$admin', null],
  recordVersion: [1],
  nothing__c: [1],
};

interface Step {
  readonly who: 'admin' | 'clerk' | 'reader';
  readonly body: readonly (readonly [string, unknown])[];
  readonly version: 'now' | 'list' | 'old' | 'none' | '*' | 'weak';
  readonly key: 'new' | 'repeated' | 'reused';
  readonly by: 'id' | 'Key__c' | 'Outer__c';
  readonly ieee754Compatible: boolean;
}

const mostly = <T>(first: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 4 + others.length, arbitrary: fc.constant(first) }, ...others.map((other) => fc.constant(other)));
const member = fc
  .constantFrom(...Object.keys(VALUES))
  .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...VALUES[name]!)));
/** Most of the values go together, or hardly any step would change anything. */
const plain = fc
  .constantFrom(
    'Count__c',
    'Money__c',
    'Span__c',
    'Data__c',
    'Tags__c',
    'Long__c',
    'When__c',
    'Decimal__c',
    'Key__c',
    'Stage__c',
  )
  .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...VALUES[name]!.slice(0, 4))));
const STEP: fc.Arbitrary<Step> = fc.record({
  who: mostly<Step['who']>('clerk', 'admin', 'reader'),
  body: fc.oneof(
    { weight: 3, arbitrary: fc.uniqueArray(plain, { selector: ([name]) => name, minLength: 1, maxLength: 6 }) },
    { weight: 2, arbitrary: fc.uniqueArray(member, { selector: ([name]) => name, maxLength: 4 }) },
  ),
  version: mostly<Step['version']>('now', 'list', 'old', 'none', '*', 'weak'),
  key: mostly<Step['key']>('new', 'repeated', 'reused'),
  by: mostly<Step['by']>('id', 'Key__c', 'Outer__c'),
  ieee754Compatible: fc.boolean(),
});

describe('an update by one statement and one step by step', () => {
  let world: World;
  const known: Record<string, string> = {};
  /** Statements that try to do it at once, by object. */
  const tried = new Map<string, number>();
  const { query } = pg.Client.prototype as unknown as { query: (...given: unknown[]) => unknown };

  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    await world.deploy(world.tenantId, {
      ...FILES,
      'permissionSets/Work.yaml': permissions('Work', RIGHTS),
      'permissionSets/Look.yaml': permissions('Look', ['read']),
    });
    for (const [person, set] of [
      [world.clerk, 'Work'],
      [world.reader, 'Look'],
    ] as const)
      await assign(person, set);
    known['$company'] = (await world.admin.create('Company__c', { name: 'Friend', Code__c: 'FRIEND' })).body.id;
    known['$mine'] = (await world.clerk.create('Root__c', { name: 'Mine' })).body.id;
    known['$theirs'] = (await world.admin.create('Root__c', { name: 'Theirs' })).body.id;
    known['$clerk'] = world.clerk.userId;
    known['$admin'] = world.admin.userId;
    for (const name of OBJECTS)
      await world.admin.create(name, {
        name: 'Holder',
        Key__c: 'taken',
        Exact__c: 'taken',
        Outer__c: 7,
        ...(name.includes('Child') ? { RootId__c: known['$theirs'] } : {}),
      });
    Object.assign(pg.Client.prototype, {
      query(this: unknown, ...given: unknown[]): unknown {
        const text = (given[0] as { text?: string } | undefined)?.text ?? '';
        const name = text.includes('SKIP LOCKED') && /FROM "t_\w+"\."(\w+)" t\s+WHERE/.exec(text)?.[1];
        if (name) tried.set(name, (tried.get(name) ?? 0) + 1);
        return query.apply(this, given);
      },
    });
  });
  after(async () => {
    Object.assign(pg.Client.prototype, { query });
    await world?.stop();
  });

  const assign = async ({ userId }: Person, set: string): Promise<void> => {
    const read = await world.admin.get('User', userId);
    await world.admin.update('User', userId, { permissionSetApiNames: [set] }, { etag: read.headers['ETag']! });
  };

  /** Values that are unique to each record and request. */
  const masked = (value: unknown, object: string, id: string): unknown =>
    JSON.parse(
      JSON.stringify(value, (_, item) => (item instanceof Date ? item.toISOString() : item))
        .replaceAll(object, 'OBJECT')
        .replaceAll(id, 'RECORD')
        .replace(
          /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g,
          (found) => Object.keys(known).find((name) => known[name] === found) ?? 'ID',
        )
        .replace(/20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00(:00)?)?/g, 'TIME')
        .replace(/req_\w+/g, 'REQUEST'),
    );

  /** One object of a pair, with a record to change. */
  class Side {
    readonly object: string;
    id = '';
    key = '';
    before: { step: Step; etag: string | undefined; path: Record<string, string> } | null = null;
    constructor(object: string) {
      this.object = object;
    }

    async run(step: Step, run: number): Promise<unknown> {
      const [row] = await world.rows(`SELECT "recordVersion" AS version FROM $schema."${this.object}" WHERE id = $1`, [
        this.id,
      ]);
      const version = row!['version'] as number;
      const tag = (number: number): string => `"${number.toString(36)}"`;
      const etags: Record<Step['version'], string | undefined> = {
        now: tag(version),
        list: `${tag(version - 1)}, ${tag(version)}, "zz"`,
        old: tag(version - 1),
        none: undefined,
        '*': '*',
        weak: `W/${tag(version)}`,
      };
      const again = step.key === 'repeated' ? this.before : null;
      const asked = again?.step ?? step;
      const etag = again ? again.etag : etags[step.version];
      const path =
        again?.path ??
        (step.by === 'id'
          ? { objectApiName: this.object, id: this.id }
          : {
              objectApiName: this.object,
              externalIdField: step.by,
              value: step.by === 'Key__c' ? `own ${run}` : String(1000 + run),
            });
      if (step.key === 'new' || !this.key) this.key = randomUUID();
      this.before = { step: asked, etag, path };
      const body = Object.fromEntries(
        asked.body.map(([name, value]) => [name, typeof value === 'string' ? (known[value] ?? value) : value]),
      );
      let answer: unknown;
      try {
        const operation = 'id' in path ? 'data.records.update' : 'data.records.upsert';
        const options = {
          key: this.key,
          ieee754Compatible: asked.ieee754Compatible,
          ...(etag === undefined ? {} : { etag }),
        };
        const { status, headers, text } = await world[asked.who].send(operation, path, {}, body, options);
        answer = { status, headers, text };
      } catch (error) {
        if (!(error instanceof PlatformError)) throw error;
        const { code, status, message, details, errors } = error;
        assert.ok(status < 500, String(error.cause ?? error));
        answer = { code, status, message, details, errors };
      }
      const of = async (text: string) => world.rows(text, [this.id]);
      const left = {
        answer,
        row: await of(
          `SELECT to_jsonb(t) - 'createdAt' AS row, to_jsonb(t)::text AS exact FROM $schema."${this.object}" t WHERE id = $1`,
        ),
        history: await of(
          'SELECT to_jsonb(h) - $$change_id$$ AS row FROM $schema._history h WHERE record_id = $1 ORDER BY record_version',
        ),
        outbox: await of(
          'SELECT type, object, record_version, user_id, client_id, agent_run_id, data FROM $schema._outbox WHERE record_id = $1 ORDER BY record_version',
        ),
        audit: await world.rows(
          'SELECT to_jsonb(a) - ARRAY[$$audit_id$$, $$tx$$, $$idempotency_key$$] AS row FROM $schema._audit a WHERE idempotency_key = $1 ORDER BY audit_id',
          [this.key],
        ),
        key: await world.rows(
          'SELECT state, status, headers, body FROM $schema._idempotency WHERE key = $1 ORDER BY user_id',
          [this.key],
        ),
      };
      return masked(left, this.object, this.id);
    }
  }

  it('treat differently formatted equal values as changed', async () => {
    for (const twin of TWINS) {
      const object = `${twin}Plain__c`;
      const one = { a: new ExactNumber('1.0') };
      const { body } = await world.clerk.create(object, { name: 'Equal', Span__c: 'P30D', Data__c: { a: 1 } });
      const months = await world.clerk.update(object, body.id, { Span__c: 'P1M' }, { etag: '"1"' });
      assert.equal(months.body.Span__c, 'P1M');
      const reply = await world.clerk.update(object, body.id, { Data__c: one, Count__c: 1 }, { etag: '"2"' });
      assert.match(reply.text, /"Data__c":{"a": 1.0}/);
      const told = await world.rows(
        'SELECT changes::text AS told FROM $schema._history WHERE record_id = $1 AND record_version > 1 ORDER BY 1',
        [body.id],
      );
      assert.deepEqual(
        told.map((row) => row['told']),
        [
          '{"Data__c": {"to": {"a": 1.0}, "from": {"a": 1}}, "Count__c": {"to": 1, "from": null}}',
          '{"Span__c": {"to": "P1M", "from": "P30D"}}',
        ],
      );
    }
  });

  it('answer, store and record the same', async function () {
    this.timeout(300_000);
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...KINDS),
        fc.boolean(),
        fc.array(STEP, { minLength: 1, maxLength: 12 }),
        async (kind, isOwn, steps) => {
          const run = ++runs;
          const sides = TWINS.map((twin: Twin) => new Side(`${twin}${kind}__c`));
          for (const side of sides) {
            const owner = isOwn ? world.clerk : world.admin;
            const { body } = await owner.create(side.object, {
              name: 'New',
              Key__c: `own ${run}`,
              Outer__c: 1000 + run,
              ...(kind === 'Child' ? { RootId__c: known[isOwn ? '$mine' : '$theirs'] } : {}),
            });
            side.id = body.id;
          }
          for (const step of steps) {
            const [quick, slow] = [await sides[0]!.run(step, run), await sides[1]!.run(step, run)];
            assert.deepEqual(quick, slow);
          }
        },
      ),
      {
        numRuns: Number(process.env['UPDATE_RUNS'] ?? 60),
        ...(process.env['UPDATE_SEED'] ? { seed: Number(process.env['UPDATE_SEED']) } : {}),
      },
    );
    for (const kind of KINDS) {
      assert.ok((tried.get(`Quick${kind}__c`) ?? 0) > 0, `${kind} was changed at once`);
      assert.equal(tried.get(`Slow${kind}__c`), undefined);
    }
  });
});
