import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import {
  createMetadataTenant,
  fieldFile,
  objectFiles,
  type StartedTenant,
  startMetadataTenant,
} from '../../support/metadata-tenant.ts';
import { until } from '../../support/until.ts';

/** A field of every type that can be deployed, with the PostgreSQL type of its column. */
const EVERY_TYPE: Record<string, [yaml: string, column: string]> = {
  Text__c: ['fieldType: text\nrequired: true\nlength: 80\npattern: "[A-Z]+.*"\ndefaultValue: A', 'text'],
  Code__c: ['fieldType: text\nunique: true\nexternalId: true\ncaseSensitive: true', 'text'],
  LongText__c: ['fieldType: longText\nlength: 1000', 'text'],
  RichText__c: ['fieldType: richText', 'text'],
  Integer__c: ['fieldType: integer\nminimum: 0\nmaximum: 100', 'bigint'],
  Decimal__c: ['fieldType: decimal\nprecision: 12\nscale: 3', 'numeric(12,3)'],
  Currency__c: ['fieldType: currency\ncurrencyField: CurrencyCode__c', 'numeric(18,2)'],
  CurrencyCode__c: ['fieldType: text\nlength: 3\ndefaultValue: EUR', 'text'],
  Percent__c: ['fieldType: percent', 'numeric(9,4)'],
  Boolean__c: ['fieldType: boolean\ndefaultValue: false', 'boolean'],
  Date__c: ['fieldType: date', 'date'],
  DateTime__c: ['fieldType: dateTime', 'timestamp(3) with time zone'],
  Time__c: ['fieldType: time', 'time(3) without time zone'],
  Duration__c: ['fieldType: duration', 'interval'],
  Picklist__c: [
    'fieldType: picklist\npicklist:\n  values:\n    - value: a\n      label: A\n      default: true\n    - value: b',
    'text',
  ],
  Multi__c: ['fieldType: multiPicklist\npicklist:\n  valueSet: Colors', 'text[]'],
  Reference__c: ['fieldType: reference\nreferenceTo: [User]\nonDelete: restrict', 'uuid'],
  Master__c: ['fieldType: masterDetail\nreferenceTo: [Parent__c]', 'uuid'],
  Email__c: ['fieldType: email', 'text'],
  Phone__c: ['fieldType: phone', 'text'],
  Url__c: ['fieldType: url', 'text'],
  Number__c: ['fieldType: autoNumber\nformat: "N-{0000}"', 'text'],
  Geo__c: ['fieldType: geolocation', 'jsonb'],
  Address__c: ['fieldType: address', 'jsonb'],
  Json__c: ['fieldType: json', 'jsonb'],
};

const valueSet = {
  'valueSets/Colors.yaml': 'type: ValueSet\napiName: Colors\nvalues:\n  - value: red\n  - value: green\n',
};

const code = (expected: string) => (error: PlatformError) => {
  assert.equal(error.code, expected, error.message);
  return true;
};

describe('metadata: deploying', () => {
  let t: StartedTenant;
  before(async function () {
    this.timeout(60_000);
    t = await startMetadataTenant();
  });
  after(() => t?.stop());

  const columns = async (table: string): Promise<Record<string, string>> => {
    const { rows } = await t.database.query<{ attname: string; type: string }>(
      `SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
      [`${t.schema}."${table}"`],
    );
    return Object.fromEntries(rows.map((row) => [row.attname, row.type]));
  };
  const version = async (): Promise<number> =>
    ((await t.platform.broker.call('metadata.tenants.get', { tenantId: t.tenantId })) as { metadataVersion: number })
      .metadataVersion;
  const insert = (table: string, values: Record<string, string>): Promise<unknown> =>
    t.database.query(
      `INSERT INTO ${t.schema}."${table}" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById"${Object.keys(
        values,
      )
        .map((name) => `, "${name}"`)
        .join('')})
        VALUES ($1, $2, now(), $2, now(), $2${Object.values(values)
          .map((_, i) => `, $${i + 3}`)
          .join('')})`,
      [randomUUID(), t.users['admin'], ...Object.values(values)],
    );

  it('creates a table with correct columns from fields of every type, and updates the snapshot', async () => {
    const files = {
      ...valueSet,
      ...objectFiles('Parent__c'),
      ...objectFiles(
        'Every__c',
        Object.fromEntries(Object.entries(EVERY_TYPE).map(([name, [yaml]]) => [name, yaml])),
        'defaultSearchFields:\n  - name\n  - Text__c\n',
      ),
    };
    const before = await version();
    const deployment = await t.deploy(files);
    assert.deepEqual(deployment.blocked, []);
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify(deployment.error));
    assert.equal(deployment.metadataVersionBefore, before);
    assert.equal(deployment.metadataVersionAfter, before + 1);
    assert.equal(deployment.changes.creates.length, Object.keys(files).length);
    const found = await columns('Every__c');
    for (const [name, [, type]] of Object.entries(EVERY_TYPE)) assert.equal(found[name], type, name);
    for (const name of ['id', 'ownerId', 'createdAt', 'recordVersion', 'name']) assert.ok(found[name], name);

    const answer = (await t.platform.broker.call('metadata.snapshots.get', { tenantId: t.tenantId })) as {
      version: number;
      snapshot: Buffer;
    };
    const object = JSON.parse(answer.snapshot.toString()).objects['Every__c'];
    assert.equal(answer.version, before + 1);
    assert.deepEqual(
      object.fields['Multi__c'].picklistValues.map((v: { value: string }) => v.value),
      ['red', 'green'],
    );
    assert.equal(object.fields['Picklist__c'].defaultValue, 'a');
    assert.equal(object.fields['Master__c'].required, true);
    assert.equal(object.fields['Master__c'].onDelete, 'cascade');
    const names = Object.keys(object.fields);
    assert.deepEqual(names.slice(0, 9), [
      'id',
      'ownerId',
      'createdAt',
      'createdById',
      'updatedAt',
      'updatedById',
      'recordVersion',
      'recordTypeApiName',
      'name',
    ]);
    assert.deepEqual(names.slice(9), [...names.slice(9)].sort());
    const parent = JSON.parse(answer.snapshot.toString()).objects['Parent__c'];
    assert.deepEqual(parent.childRelationships, [
      { relationshipName: 'Everies__r', objectApiName: 'Every__c', field: 'Master__c', onDelete: 'cascade' },
    ]);
  });

  it('retrieves deployed files byte for byte; redeploying them is no change', async () => {
    const shared = await t.deploy({
      ...objectFiles('Shared__c'),
      'roles/Rep.yaml': 'type: Role\napiName: Rep\nlabel: Rep\n',
      'groups/Finance.yaml':
        'type: Group\napiName: Finance\nlabel: Finance\nmembers:\n  users: [b@x.example, a@x.example]\n  roles: [Rep]\n',
      'objects/Shared__c/sharingRules/Sent.yaml':
        'to: {group: Finance}\ncriteria: |\n  record.name == "sent"\nkind: criteria\naccess: read\ntype: SharingRule\napiName: Sent\nobject: Shared__c\n',
      'objects/Shared__c/sharingRules/Owned.yaml':
        'type: SharingRule\napiName: Owned\nobject: Shared__c\nkind: owner\nfrom: {role: Rep}\nto: {group: Finance}\naccess: readWrite\n',
    });
    assert.equal(shared.status, 'SUCCEEDED', JSON.stringify(shared.blocked));
    const all = {
      CustomObject: ['*'],
      CustomField: ['*'],
      ValueSet: ['*'],
      Profile: ['*'],
      TenantSettings: ['*'],
      Role: ['*'],
      Group: ['*'],
      SharingRule: ['Shared__c.*'],
    };
    const first = await t.retrieve(all);
    assert.equal(
      first.files['groups/Finance.yaml'],
      'type: Group\napiName: Finance\nlabel: Finance\nmembers:\n  roles:\n    - Rep\n  users:\n    - a@x.example\n    - b@x.example\n',
    );
    assert.ok(first.files['objects/Shared__c/sharingRules/Sent.yaml'] && first.files['roles/Rep.yaml']);
    const versionBefore = await version();
    const { json: accepted } = await t.call('metadata.deployments.create', {
      body: { files: first.files, package: first.package, baseMetadataVersion: first.metadataVersion },
      headers: { idempotencyKey: randomUUID() },
    });
    assert.equal(accepted.manifestHash, first.manifestHash);
    const deployment = await t.finished(accepted.deploymentId);
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify(deployment.error));
    assert.equal(deployment.changes.noops.length, first.components.length);
    assert.deepEqual([deployment.changes.creates, deployment.changes.updates], [[], []]);
    assert.equal(await version(), versionBefore, 'nothing changed, so there is no new version');
    const second = await t.retrieve(all);
    const { 'erp-project.yaml': _first, ...files } = first.files;
    const { 'erp-project.yaml': _second, ...again } = second.files;
    assert.deepEqual(again, files);
    assert.equal(second.manifestHash, first.manifestHash);
  });

  it('applies sharing rules whose criteria no index can hold', async () => {
    const criteria = {
      Some: 'record.Tags__c.exists(t, t == "x")',
      All: '["a", "b"].all(t, t != record.name)',
      Kept: 'size(record.Tags__c.filter(t, 1 / size(t) > 0)) > 1',
      One: '"x" in record.Tags__c',
    };
    const deployment = await t.deploy({
      ...objectFiles(
        'Tagged__c',
        { Tags__c: 'fieldType: multiPicklist\npicklist: {values: [{value: x}, {value: y}]}' },
        'sharingDefault: private\n',
      ),
      'groups/Finance.yaml': 'type: Group\napiName: Finance\nlabel: Finance\n',
      ...Object.fromEntries(
        Object.entries(criteria).map(([name, text]) => [
          `objects/Tagged__c/sharingRules/${name}.yaml`,
          `type: SharingRule\napiName: ${name}\nobject: Tagged__c\nkind: criteria\ncriteria: ${JSON.stringify(text)}\nto:\n  group: Finance\naccess: read\n`,
        ]),
      ),
    });
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify([deployment.error, deployment.blocked]));
  });

  it('applies all or nothing: one bad file changes nothing', async () => {
    const before = await version();
    const deployment = await t.deploy({
      ...objectFiles('Good__c', { A__c: 'fieldType: text' }),
      ...fieldFile('Good__c', 'B__c', 'fieldType: reference\nreferenceTo: [Missing__c]'),
    });
    assert.equal(deployment.status, 'FAILED');
    assert.equal(deployment.error.code, 'PLAN_BLOCKED');
    const [problem] = deployment.blocked;
    assert.equal(problem.code, 'DEPENDENCY_MISSING');
    assert.deepEqual([problem.path, problem.line, problem.column], ['objects/Good__c/fields/B__c.yaml', 6, 15]);
    assert.deepEqual(problem.details.members, [{ type: 'CustomObject', fullName: 'Missing__c' }]);
    assert.equal(await version(), before);
    assert.deepEqual(await columns('Good__c'), {});
  });

  it('leaves no change when the database refuses the DDL', async () => {
    const before = await version();
    await t.database.query(`CREATE TABLE ${t.schema}."InTheWay__c" ()`);
    const deployment = await t.deploy({ ...objectFiles('AAA__c'), ...objectFiles('InTheWay__c') });
    assert.equal(deployment.status, 'FAILED');
    assert.equal(deployment.error.code, 'APPLY_FAILED');
    assert.equal(await version(), before);
    assert.deepEqual(await columns('AAA__c'), {});
    assert.deepEqual((await t.retrieve({ CustomObject: ['AAA__c'] })).notFound, [
      { type: 'CustomObject', member: 'AAA__c' },
    ]);
    await t.database.query(`DROP TABLE ${t.schema}."InTheWay__c"`);
  });

  it('with checkOnly runs everything and rolls back', async () => {
    const before = await version();
    const deployment = await t.deploy(objectFiles('Checked__c', { A__c: 'fieldType: text' }), { checkOnly: true });
    assert.deepEqual([deployment.status, deployment.kind, deployment.checkOnly], ['SUCCEEDED', 'validation', true]);
    assert.equal(deployment.changes.creates.length, 2);
    assert.equal(deployment.metadataVersionAfter, null);
    assert.equal(await version(), before);
    assert.deepEqual(await columns('Checked__c'), {});
  });

  it('refuses to overwrite changes made since the retrieve', async () => {
    await t.deploy(objectFiles('Drift__c', { A__c: 'fieldType: text\nlength: 10' }));
    const mine = await t.retrieve({ CustomField: ['Drift__c.*'] });
    await t.deploy(fieldFile('Drift__c', 'A__c', 'fieldType: text\nlength: 20'));
    const files = { 'objects/Drift__c/fields/A__c.yaml': mine.files['objects/Drift__c/fields/A__c.yaml'] };
    await assert.rejects(t.accept(files, { baseMetadataVersion: mine.metadataVersion }), (error: PlatformError) => {
      assert.equal(error.code, 'METADATA_DRIFT');
      const [component] = error.details!['components'] as { fullName: string; changedById: string }[];
      assert.equal(component!.fullName, 'Drift__c.A__c');
      assert.equal(component!.changedById, t.users['admin']);
      return true;
    });
    await assert.rejects(t.validate(files, { baseMetadataVersion: mine.metadataVersion }), code('METADATA_DRIFT'));
    const now = await t.retrieve({ CustomField: ['Drift__c.*'] });
    const fine = await t.deploy(files, { baseMetadataVersion: now.metadataVersion });
    assert.equal(fine.status, 'SUCCEEDED');
  });

  it('applies only the reviewed plan', async () => {
    const files = objectFiles('Planned__c', { A__c: 'fieldType: text' });
    const reviewed = await t.validate(files);
    assert.equal(reviewed.valid, true);
    await t.deploy(objectFiles('Planned__c'));
    await assert.rejects(t.accept(files, { expectedPlanHash: reviewed.planHash }), code('PLAN_CHANGED'));
    const again = await t.validate(files);
    assert.notEqual(again.planHash, reviewed.planHash);
    assert.equal((await t.deploy(files, { expectedPlanHash: again.planHash })).status, 'SUCCEEDED');
  });

  it('applies concurrent deployments one after the other, in order', async () => {
    const accepted = [];
    for (let i = 0; i < 6; i++)
      accepted.push(
        await t.accept(objectFiles('Queue__c', { [`F${i}__c`]: 'fieldType: text' }, `description: 'n ${i}'\n`)),
      );
    const ended = await Promise.all(accepted.map(({ deploymentId }) => t.finished(deploymentId)));
    assert.deepEqual(
      ended.map((d) => d.status),
      Array(6).fill('SUCCEEDED'),
    );
    const versions = ended.map((d) => d.metadataVersionAfter);
    assert.deepEqual(
      versions,
      versions.map((_, i) => versions[0] + i),
    );
    const { files } = await t.retrieve({ CustomObject: ['Queue__c'] });
    assert.match(files['objects/Queue__c/object.yaml'], /^description: n 5$/m);
  });

  it('replans when its plan is outdated before it holds the lock', async () => {
    const holder = await t.database.pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM ${t.schema}._state FOR SHARE`);
      const accepted = await t.accept(objectFiles('Outdated__c'));
      while ((await t.state(accepted.deploymentId)) !== 'APPLYING')
        await new Promise((resolve) => setTimeout(resolve, 10));
      const demoted = `UPDATE ${t.schema}."User" SET "profileApiName" = $1 WHERE id = $2`;
      await holder.query(demoted, ['Standard', t.users['admin']]);
      await holder.query(`UPDATE ${t.schema}._state SET access_version = access_version + 1`);
      await holder.query('COMMIT');
      const { deploymentId } = accepted;
      await until(async () => ['FAILED', 'SUCCEEDED'].includes(await t.state(deploymentId)));
      await holder.query(demoted, ['Administrator', t.users['admin']]);
      await holder.query(`UPDATE ${t.schema}._state SET access_version = access_version + 1`);
      const done = await t.finished(deploymentId);
      assert.deepEqual([done.status, done.error.code], ['FAILED', 'PLAN_BLOCKED']);
      assert.equal(done.blocked[0].code, 'COMPONENT_PERMISSION_DENIED');
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
    }
  });

  it('terminates although its plan is always outdated', async () => {
    let goesOn = true;
    const changes = (async () => {
      while (goesOn) await t.database.query(`UPDATE ${t.schema}._state SET access_version = access_version + 1`);
    })();
    try {
      assert.equal((await t.deploy(objectFiles('Restless__c'))).status, 'SUCCEEDED');
    } finally {
      goesOn = false;
      await changes;
    }
  });

  it('creates one deployment per key, and repeats the response', async () => {
    const files = objectFiles('Once__c');
    const body = { files, package: { version: 1, types: [{ name: 'CustomObject', members: ['Once__c'] }] } };
    const headers = { idempotencyKey: 'once-0001' };
    const [a, b] = await Promise.all([
      t.call('metadata.deployments.create', { body, headers }),
      t.call('metadata.deployments.create', { body, headers }),
    ]);
    assert.equal(a.status, 202);
    assert.equal(a.json.deploymentId, b.json.deploymentId);
    assert.equal([a, b].filter((reply) => reply.headers?.['Idempotency-Replayed'] === 'true').length, 1);
    await assert.rejects(
      t.call('metadata.deployments.create', { body: { ...body, checkOnly: true }, headers }),
      code('IDEMPOTENCY_KEY_REUSED'),
    );
    await t.finished(a.json.deploymentId);
  });

  it('allows or blocks changes depending on the records', async () => {
    await t.deploy(objectFiles('Rows__c', { Code__c: 'fieldType: text\nlength: 20', Amount__c: 'fieldType: decimal' }));
    await insert('Rows__c', { Code__c: 'same', Amount__c: '1.25' });
    await insert('Rows__c', { Code__c: 'SAME', Amount__c: '2.50' });
    const blockedBy = async (yaml: string, field = 'Code__c'): Promise<unknown[]> =>
      (await t.validate(fieldFile('Rows__c', field, yaml))).blocked.map((p: { code: string; details: object }) => [
        p.code,
        p.details,
      ]);
    const two = { records: 2 };
    assert.deepEqual(await blockedBy('fieldType: text\nlength: 20\nunique: true'), [['DATA_INCOMPATIBLE', two]]);
    assert.deepEqual(await blockedBy('fieldType: text\nlength: 20\nunique: true\ncaseSensitive: true'), []);
    assert.deepEqual(await blockedBy('fieldType: text\nlength: 3'), [['DESTRUCTIVE_MANIFEST_REQUIRED', two]]);
    assert.deepEqual(await blockedBy('fieldType: text\nlength: 4'), []);
    assert.deepEqual(await blockedBy('fieldType: integer'), [['DESTRUCTIVE_MANIFEST_REQUIRED', two]]);
    assert.deepEqual(await blockedBy('fieldType: date'), [['DESTRUCTIVE_MANIFEST_REQUIRED', two]]);
    assert.deepEqual(await blockedBy('fieldType: time'), [['FIELD_TYPE_CHANGE_UNSUPPORTED', undefined]]);
    assert.deepEqual(await blockedBy('fieldType: decimal\nprecision: 5\nscale: 1', 'Amount__c'), [
      ['DESTRUCTIVE_MANIFEST_REQUIRED', { records: 1 }],
    ]);
    assert.deepEqual(await blockedBy('fieldType: decimal\nprecision: 20\nscale: 4', 'Amount__c'), []);
    assert.deepEqual(await blockedBy('fieldType: text\nrequired: true', 'New__c'), [['DATA_INCOMPATIBLE', two]]);
    assert.deepEqual(await blockedBy("fieldType: text\nrequired: true\ndefaultValue: it's \\here", 'New__c'), []);
    assert.deepEqual(
      await blockedBy('fieldType: text\nrequired: true\nunique: true\ndefaultValue: one', 'New__c'),
      [['DATA_INCOMPATIBLE', two]],
      'two records would get the same value',
    );

    const deployment = await t.deploy({
      ...fieldFile('Rows__c', 'New__c', "fieldType: text\nrequired: true\ndefaultValue: it's \\here"),
      ...fieldFile('Rows__c', 'Amount__c', 'fieldType: decimal\nprecision: 20\nscale: 4'),
      ...fieldFile('Rows__c', 'Code__c', 'fieldType: text\nlength: 4\nunique: true\ncaseSensitive: true'),
    });
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify(deployment.blocked));
    assert.equal(deployment.changes.updates[0].impact.records, 2);
    const { rows } = await t.database.query(`SELECT "New__c", "Amount__c" FROM ${t.schema}."Rows__c" ORDER BY 2`);
    assert.deepEqual(rows, [
      { New__c: "it's \\here", Amount__c: '1.2500' },
      { New__c: "it's \\here", Amount__c: '2.5000' },
    ]);
    await assert.rejects(insert('Rows__c', { Code__c: 'same' }), { code: '23505' });
  });

  it('counts values that writes refuse as blank when a field becomes required', async () => {
    const choice = 'fieldType: multiPicklist\npicklist: {values: [{value: a}, {value: b}]}';
    await t.deploy(objectFiles('Blank__c', { Text__c: 'fieldType: text', List__c: choice }));
    await insert('Blank__c', { Text__c: ' \u00a0\n', List__c: '{}' });
    await insert('Blank__c', { Text__c: 'x', List__c: '{a}' });
    for (const [field, yaml] of [
      ['Text__c', 'fieldType: text'],
      ['List__c', choice],
    ] as const) {
      const { blocked } = await t.validate(fieldFile('Blank__c', field, `${yaml}\nrequired: true`));
      assert.deepEqual(
        blocked.map((p: { code: string; details: object }) => [p.code, p.details]),
        [['DATA_INCOMPATIBLE', { records: 1 }]],
      );
    }
    const { status, blocked } = await t.deploy({
      ...fieldFile('Blank__c', 'Text__c', 'fieldType: text\nrequired: true\ndefaultValue: none'),
      ...fieldFile('Blank__c', 'List__c', `${choice}\nrequired: true\ndefaultValue: [b]`),
    });
    assert.equal(status, 'SUCCEEDED', JSON.stringify(blocked));
    const { rows } = await t.database.query(`SELECT "Text__c", "List__c" FROM ${t.schema}."Blank__c" ORDER BY 1`);
    assert.deepEqual(rows, [
      { Text__c: 'none', List__c: ['b'] },
      { Text__c: 'x', List__c: ['a'] },
    ]);
  });

  it('removes unused values from a picklist, regardless of earlier changes', async () => {
    const picklist = (type: string, values: string[]): string =>
      `fieldType: ${type}\npicklist: {values: [${values.map((value) => `{value: ${value}}`).join(', ')}]}`;
    const fields = (...values: string[]): Record<string, string> => ({
      ...fieldFile('Closed__c', 'One__c', picklist('picklist', values)),
      ...fieldFile('Closed__c', 'Many__c', picklist('multiPicklist', values)),
    });
    await t.deploy({ ...objectFiles('Closed__c'), ...fields('a', 'b') });
    // A record that is restored holds what it held when it was deleted.
    await insert('Closed__c', { One__c: 'gone', Many__c: '{gone,a}' });
    const blocked = async (...values: string[]): Promise<string[]> =>
      (await t.validate(fields(...values))).blocked.map((it: { fullName: string; message: string }) =>
        [it.fullName, it.message].join(': '),
      );
    assert.deepEqual(await blocked('a'), []);
    assert.deepEqual(await blocked('b'), ['Closed__c.Many__c: Records hold values that would be gone: a. (1 record)']);
  });

  it('restricts an open picklist when its records hold only listed values', async () => {
    const picklist = (type: string, values: string): string => `fieldType: ${type}\npicklist: ${values}`;
    const open = '{restricted: false}';
    await t.deploy(
      objectFiles('Open__c', { One__c: picklist('picklist', open), Many__c: picklist('multiPicklist', open) }),
    );
    await insert('Open__c', { One__c: 'a', Many__c: '{a,b}' });
    await insert('Open__c', {});
    const close = async (values: string): Promise<unknown[]> => {
      const { blocked } = await t.validate({
        ...fieldFile('Open__c', 'One__c', picklist('picklist', values)),
        ...fieldFile('Open__c', 'Many__c', picklist('multiPicklist', values)),
      });
      return blocked.map((p: { fullName: string; details: object }) => [p.fullName, p.details]);
    };
    const one = { records: 1 };
    assert.deepEqual(await close('{values: [{value: a}]}'), [['Open__c.Many__c', one]]);
    assert.deepEqual(await close('{values: [{value: b}]}'), [
      ['Open__c.Many__c', one],
      ['Open__c.One__c', one],
    ]);
    assert.deepEqual(await close('{values: [{value: a}, {value: b, active: false}]}'), []);
  });

  it('warns of records in states without a transition', async () => {
    const stage = (values: string[], retired: string[] = []): string =>
      `fieldType: picklist\npicklist:\n  restricted: true\n  values:\n${[...values, ...retired].map((value) => `    - value: ${value}\n${retired.includes(value) ? '      active: false\n' : ''}`).join('')}`.trimEnd();
    const model = (states: string[], direct = false): Record<string, string> => ({
      'objects/Trip__c/stateModels/Life.yaml': `type: StateModel\napiName: Life\nobject: Trip__c\nfield: Stage__c\ninitial: new\nallowDirectEdit: ${direct}\nstates:\n${states.map((value) => `  - value: ${value}\n`).join('')}transitions:\n  - key: end\n    label: End\n    from:\n      - new\n    to: done\n`,
    });
    const warned = async (files: Record<string, string>): Promise<unknown[]> => {
      const { valid, warnings } = await t.validate(files);
      assert.equal(valid, true);
      return warnings
        .filter(({ details }: { details?: object }) => details)
        .map((found: { code: string; details: object }) => [found.code, found.details]);
    };
    await t.deploy(objectFiles('Trip__c', { Stage__c: stage(['new', 'going', 'done']) }));
    for (const Stage__c of ['new', 'going', 'going', 'done']) await insert('Trip__c', { Stage__c });
    await insert('Trip__c', {});
    assert.deepEqual(await warned(model(['new', 'done'])), [['STATE_MODEL_INVALID', { records: 3 }]]);
    assert.deepEqual(await warned(model(['new', 'going', 'done'])), [['STATE_MODEL_INVALID', { records: 1 }]]);
    assert.deepEqual(await warned(model(['new', 'done'], true)), [], 'people can set it themselves');
    const other = fieldFile('Trip__c', 'Other__c', stage(['new', 'done']));
    const byOther = Object.fromEntries(
      Object.entries(model(['new', 'done'])).map(([path, text]) => [path, text.replace('Stage__c', 'Other__c')]),
    );
    assert.deepEqual(await warned({ ...other, ...byOther }), [['STATE_MODEL_INVALID', { records: 5 }]]);
    const all = model(['new', 'done']);
    await t.deploy({
      'objects/Trip__c/stateModels/Life.yaml': all['objects/Trip__c/stateModels/Life.yaml']!.replace(
        /states:\n( {2}- .*\n)+/,
        '',
      ),
    });
    const retired = fieldFile('Trip__c', 'Stage__c', stage(['new', 'done'], ['going']));
    assert.deepEqual(
      await warned(retired),
      [['STATE_MODEL_INVALID', { records: 3 }]],
      'the model itself does not change',
    );
    assert.deepEqual(await warned(fieldFile('Trip__c', 'More__c', 'fieldType: text')), []);
  });

  it('blocks removing a used value from a value set, and counts the records of a sharing rule', async () => {
    const sizes = (...values: string[]): Record<string, string> => ({
      'valueSets/Sizes.yaml': `type: ValueSet\napiName: Sizes\nvalues:\n${values.map((value) => `  - value: ${value}\n`).join('')}`,
    });
    const field = { Size__c: 'fieldType: picklist\npicklist:\n  valueSet: Sizes' };
    await t.deploy({ ...sizes('small', 'large'), ...objectFiles('Shirt__c', field) });
    await insert('Shirt__c', { Size__c: 'large' });
    const { blocked } = await t.validate(sizes('small'));
    assert.deepEqual(
      blocked.map((p: { code: string; details: object }) => [p.code, p.details]),
      [['DESTRUCTIVE_MANIFEST_REQUIRED', { records: 1 }]],
    );
    const rule =
      'type: SharingRule\napiName: Large\nobject: Shirt__c\nkind: criteria\ncriteria: record.Size__c == "large"\nto:\n  role: Boss\naccess: read\n';
    const role = { 'roles/Boss.yaml': 'type: Role\napiName: Boss\nlabel: Boss\n' };
    const plan = await t.validate({ ...role, 'objects/Shirt__c/sharingRules/Large.yaml': rule });
    const made = plan.creates.find(({ type }: { type: string }) => type === 'SharingRule');
    assert.equal(made.impact.records, 1, JSON.stringify(plan.blocked));
  });

  it('protects platform components, and lets the tenant extend them', async () => {
    const { files } = await t.retrieve({ CustomField: ['User.email'], CustomObject: ['User'] });
    const changed = files['objects/User/fields/email.yaml'].replace('label: Email', 'label: Mail');
    const { blocked } = await t.validate({ 'objects/User/fields/email.yaml': changed });
    assert.deepEqual(
      blocked.map((p: { code: string }) => p.code),
      ['SYSTEM_COMPONENT_READ_ONLY'],
    );
    assert.equal((await t.deploy(fieldFile('User', 'Shoe__c', 'fieldType: integer'))).status, 'SUCCEEDED');
  });

  it('requires the permission to read or manage configuration', async () => {
    const body = { package: { version: 1, types: [] } };
    await assert.rejects(
      t.call('metadata.components.retrieve', { body }, 'nobody'),
      code('METADATA_PERMISSION_DENIED'),
    );
    assert.ok((await t.call('metadata.components.retrieve', { body }, 'reader')).json.files);
    const deploy = {
      body: { files: {}, package: { version: 1, types: [] } },
      headers: { idempotencyKey: randomUUID() },
    };
    await assert.rejects(t.call('metadata.deployments.create', deploy, 'reader'), code('METADATA_PERMISSION_DENIED'));
  });

  it('shows the plan of a deployment only with the permission to read configuration', async () => {
    const { deploymentId } = await t.deploy(objectFiles('Secret__c'));
    const path = { deploymentId };
    const { json: seen } = await t.call('metadata.deployments.get', { path }, 'reader');
    assert.equal(seen.changes.creates.length, 1);
    const { json: hidden } = await t.call('metadata.deployments.get', { path }, 'nobody');
    assert.equal(hidden.status, 'SUCCEEDED');
    assert.ok(!JSON.stringify(hidden).includes('Secret__c'));
  });

  it("does not find another tenant's deployments", async () => {
    const other = await createMetadataTenant(t.platform);
    try {
      const { deploymentId } = await other.deploy(objectFiles('Theirs__c'));
      for (const id of [deploymentId, randomUUID(), 'x', "'; DROP TABLE x; --"])
        await assert.rejects(
          t.call('metadata.deployments.get', { path: { deploymentId: id } }),
          code('DEPLOYMENT_NOT_FOUND'),
        );
      const { json } = await t.call('metadata.deployments.list', { query: { take: 200 } });
      assert.ok(json.records.every((d: { deploymentId: string }) => d.deploymentId !== deploymentId));
    } finally {
      await other.database.close();
    }
  });

  it('lists deployments by pages, newest first', async () => {
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: Record<string, unknown> = { take: 3, status: 'SUCCEEDED', ...(cursor ? { cursor } : {}) };
      const { json } = await t.call('metadata.deployments.list', { query });
      seen.push(...json.records.map((d: { deploymentId: string }) => d.deploymentId));
      cursor = json.nextCursor;
    } while (cursor);
    assert.ok(seen.length > 6);
    assert.deepEqual(seen, [...new Set(seen)].sort().reverse());
    const page = await t.call('metadata.deployments.list', { query: { take: 1 } });
    await assert.rejects(
      t.call('metadata.deployments.list', { query: { cursor: page.json.nextCursor, status: 'FAILED' } }),
      code('CURSOR_QUERY_MISMATCH'),
    );
    const [{ deploymentId }] = page.json.records;
    const forged = Buffer.from(JSON.stringify([1, deploymentId, null, null])).toString('base64url');
    for (const cursor of ['abc', forged])
      await assert.rejects(t.call('metadata.deployments.list', { query: { cursor } }), code('CURSOR_INVALID'));
    const query = { take: 1, cursor: page.json.nextCursor };
    assert.equal((await t.call('metadata.deployments.list', { query })).json.records.length, 1);
    await assert.rejects(t.call('metadata.deployments.list', { query }, 'reader'), code('CURSOR_INVALID'));
  });

  it('keeps the data of a quick deploy for 10 days, and of a rollback for 30', async () => {
    const { rows: inserted } = await t.database.query<{ deployment_id: string }>(
      `INSERT INTO metadata.deployments (tenant_id, deployment_id, kind, check_only, allow_destructive_changes,
          manifest_hash, package, files, inverse_plan, status, finished_at, plan, created_by_user_id,
          created_by_display_name, created_by_client_id, request_id, idempotency_key)
        SELECT $1, gen_random_uuid(), kind, false, false, '', '{}', '{"a":"b"}', '{"files":{}}', 'SUCCEEDED',
          now() - make_interval(days => days), json_build_object('creates', repeat('x', bytes)), gen_random_uuid(), '',
          '', '', ''
        FROM (VALUES (1, 'validation', 11, 70000), (2, 'validation', 9, 70000), (3, 'deploy', 31, 1),
          (4, 'deploy', 29, 70000)) AS old (n, kind, days, bytes) ORDER BY n RETURNING deployment_id`,
      [t.tenantId],
    );
    assert.equal((await t.deploy(objectFiles('Kept__c'))).status, 'SUCCEEDED');
    const read = async () =>
      (
        await t.database.query(
          `SELECT files::text, inverse_plan IS NULL AS forgotten, plan IS NULL AS "planForgotten"
            FROM metadata.deployments WHERE deployment_id = ANY($1) ORDER BY queue_number`,
          [inserted.map((row) => row.deployment_id)],
        )
      ).rows;
    const all = [
      { files: '{}', forgotten: true, planForgotten: true },
      { files: '{"a":"b"}', forgotten: false, planForgotten: false },
      { files: '{}', forgotten: true, planForgotten: false },
      { files: '{"a":"b"}', forgotten: false, planForgotten: false },
    ];
    await until(async () => Boolean((await read())[0]?.['forgotten']));
    assert.deepEqual(await read(), all);
  });

  it('writes version, event and audit with the change', async () => {
    const deployment = await t.deploy(objectFiles('Trail__c'));
    const { rows: events } = await t.database.query<{ data: object }>(
      `SELECT data FROM ${t.schema}._outbox WHERE type = 'metadata.schema.changed' ORDER BY outbox_id DESC LIMIT 1`,
    );
    assert.deepEqual(events[0]!.data, {
      metadataVersion: deployment.metadataVersionAfter,
      deploymentId: deployment.deploymentId,
    });
    const { rows: audit } = await t.database.query<{ channel: string; outcome: string }>(
      `SELECT channel, outcome FROM ${t.schema}._audit WHERE changes->>'deploymentId' = $1 ORDER BY at`,
      [deployment.deploymentId],
    );
    assert.deepEqual(audit, [
      { channel: 'api', outcome: 'committed' },
      { channel: 'job', outcome: 'committed' },
    ]);
    const { rows: state } = await t.database.query(`SELECT metadata_version FROM ${t.schema}._state`);
    assert.deepEqual(state, [{ metadata_version: deployment.metadataVersionAfter }]);
  });
});
