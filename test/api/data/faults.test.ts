/** Rules that fail at evaluation, records in cycles, and rules of every kind that change during writes. */
import assert from 'node:assert/strict';
import type { Answer, Api } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from './deals.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const ENDLESS =
  '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))';

const action = (apiName: string, body: object): Record<string, string> => ({
  [`objects/Deal__c/actions/${apiName}.yaml`]: JSON.stringify({
    type: 'CustomAction',
    apiName,
    object: 'Deal__c',
    label: apiName,
    permission: 'Deal__c.Divide',
    ...body,
  }),
});
const sets = (field: string, value: string): object => ({
  effects: [{ verb: 'updateFields', fields: { [field]: value } }],
});

const FILES: Record<string, string> = {
  ...fieldFile('Deal__c', 'Amount__c', 'fieldType: currency'),
  ...fieldFile('Deal__c', 'Parts__c', 'fieldType: integer'),
  ...fieldFile(
    'Deal__c',
    'Up__c',
    'fieldType: reference\nreferenceTo: [Deal__c]\nonDelete: cascade\nrelationshipName: Below__r',
  ),
  ...action('Divide', sets('Amount__c', 'record.Amount__c / record.Parts__c')),
  ...action('Endless', sets('Stage__c', `${ENDLESS} ? "a" : "b"`)),
  ...action('Make', {
    effects: [
      { verb: 'updateFields', fields: { Stage__c: '"made"' } },
      {
        verb: 'createRecord',
        object: 'DealLine__c',
        fields: { name: '"x"', Deal__c: 'record.id', Each__c: '1 / record.Parts__c' },
      },
    ],
  }),
  ...action('Guarded', { guard: `${ENDLESS}`, effects: [] }),
  ...fieldFile('DealLine__c', 'Each__c', 'fieldType: decimal'),
  'objects/Deal__c/sharingRules/Cheap.yaml':
    'type: SharingRule\napiName: Cheap\nobject: Deal__c\nkind: criteria\ncriteria: record.Amount__c / record.Parts__c < 100\nto:\n  role: SalesRep\naccess: read\n',
};

/** Tenants of earlier versions may have them; a deployment refuses new ones (docs/reference/metadata.md#validate). */
const DEPLOYED_BEFORE: Record<string, string> = {
  ...action('Tell', {
    effects: [{ verb: 'emitEvent', type: 'told', data: { each: 'record.Amount__c / record.Parts__c' } }],
  }),
  ...action('Notify', { effects: [{ verb: 'sendNotification', type: 'Told', to: 'owner' }] }),
};

describe('rules that fail, cyclic records, and changing rules', () => {
  let deals: Deals;
  let sam: Api;
  let sue: Api;
  let mia: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ sam, sue, mia } = deals.as);
    await deals.deploy(FILES);
    const tenantId = (await deals.as.ada.get('/identity')).body.tenant.id;
    await deals.platform.broker.call('metadata.templates.deploy', { tenantId, files: DEPLOYED_BEFORE });
    const set = 'permissionSets/More.yaml';
    const edit = ['Deal__c.Amount__c', 'Deal__c.Parts__c', 'Deal__c.Up__c', 'DealLine__c.Each__c'];
    await deals.deploy({
      [set]: JSON.stringify({
        type: 'PermissionSet',
        apiName: 'More',
        label: 'More',
        fields: Object.fromEntries(edit.map((name) => [name, { read: true, edit: true }])),
        actions: ['Deal__c.Divide'],
      }),
    });
    for (const name of ['mia', 'sam', 'sue'] as const)
      await deals.setUser(name, { permissionSetApiNames: ['Deals', 'More'] });
  });
  after(() => deals?.platform.stop());

  const at = (id: string, rest = ''): string => `/data/Deal__c/${id}${rest}`;
  const deal = async (more: object = {}, owner = sam): Promise<string> =>
    (await deals.deal(owner, more as Record<string, unknown>)).body.id;
  const act = async (id: string, key: string, who = sam): Promise<Answer> => {
    const etag = (await who.get(at(id))).headers.get('etag')!;
    return who.post(at(id, `/transitions/${key}`), undefined, { etag });
  };
  const faults = ({ body }: Answer): unknown[] =>
    body.errors.map((error: Anything) => [error.pointer, error.code, error.field, error.params.reason]);

  describe('an effect that cannot be computed', () => {
    const cases: [key: string, fault: unknown[]][] = [
      ['Divide', ['', 'FIELD_OUT_OF_RANGE', 'Amount__c', 'DIVISION_BY_ZERO']],
      ['Endless', ['', 'FIELD_OUT_OF_RANGE', 'Stage__c', 'COST_EXCEEDED']],
      ['Tell', ['', 'FIELD_OUT_OF_RANGE', null, 'DIVISION_BY_ZERO']],
      ['Make', ['', 'FIELD_OUT_OF_RANGE', 'Each__c', 'DIVISION_BY_ZERO']],
    ];
    for (const [key, fault] of cases)
      it(`refuses the whole action: ${key}`, async () => {
        const id = await deal({ Amount__c: 10, Parts__c: 0, Stage__c: 'new' });
        const refused = await act(id, key);
        assert.deepEqual([refused.status, refused.body.code], [422, 'VALIDATION_FAILED'], refused.text);
        assert.deepEqual(faults(refused), [fault]);
        const { body } = await sam.get(at(id));
        assert.deepEqual([body.recordVersion, body.Stage__c, body.Amount__c], [1, 'new', 10]);
        const lines = await sam.get(`/data/DealLine__c?where=${encodeURIComponent(JSON.stringify({ Deal__c: id }))}`);
        assert.deepEqual(lines.body.records, [], 'nothing half done');
      });

    it('is null when its inputs are null', async () => {
      const id = await deal({ Amount__c: 10 });
      const done = await act(id, 'Divide');
      assert.deepEqual([done.status, done.body.record?.Amount__c], [201, null], done.text);
    });
  });

  it('a guard without end does not hold', async () => {
    const id = await deal();
    const { status, body } = await act(id, 'Guarded');
    assert.deepEqual([status, body.code, body.details.reason], [409, 'STATE_CONFLICT', 'guard']);
    const list = await sam.get(at(id, '/transitions'));
    const guarded = list.body.records.find((item: Anything) => item.transitionKey === 'Guarded');
    assert.deepEqual(
      guarded.unavailableReasons.map((reason: Anything) => reason.code),
      ['GUARD_NOT_MET'],
    );
  });

  it('criteria that divide by zero or read a null match nothing, and do not block writes', async () => {
    const ids: Record<string, string> = {};
    for (const [name, values] of Object.entries({
      open: { Amount__c: 10, Parts__c: 1 },
      zero: { Amount__c: 10, Parts__c: 0 },
      empty: { Amount__c: null, Parts__c: 1 },
    }))
      ids[name] = await deal(values);
    const seen = await sue.get(`/data/Deal__c?take=200&fields=id`);
    const found = new Set(seen.body.records.map((record: Anything) => record.id));
    assert.deepEqual(
      Object.keys(ids).filter((name) => found.has(ids[name])),
      ['open'],
    );
    assert.equal((await sue.get(at(ids['zero']!))).status, 404);
    const changed = await sam.patch(at(ids['zero']!), { Parts__c: 2 }, { etag: '"1"' });
    assert.equal(changed.status, 200, changed.text);
    assert.equal((await sue.get(at(ids['zero']!))).status, 200);
  });

  it("records that are each other's parents are deleted together, and restored by any of them", async () => {
    const [a, b, c] = [await deal({ name: 'a' }), await deal({ name: 'b' }), await deal({ name: 'c' })];
    for (const [id, up] of [
      [a, b],
      [b, c],
      [c, a],
    ] as const)
      assert.equal((await sam.patch(at(id), { Up__c: up }, { etag: '"1"' })).status, 200);
    const dry = await sam.post('/data/Deal__c/check', { operation: 'delete', id: a, ifMatch: '"2"' });
    assert.equal(dry.body.valid, true, dry.text);
    const deleted = await sam.delete(at(a), { etag: '"2"' });
    assert.deepEqual(
      [deleted.status, deleted.body.cascaded],
      [200, [{ objectApiName: 'Deal__c', count: 2 }]],
      deleted.text,
    );
    const back = await sam.post(at(b, '/restore'));
    assert.equal(back.status, 201, back.text);
    for (const [id, up] of [
      [a, b],
      [b, c],
      [c, a],
    ] as const)
      assert.equal((await sam.get(at(id))).body.Up__c, up);
  });

  it('a record whose owner is deactivated goes through its transitions', async () => {
    const id = await deal({ Amount__c: 10, Parts__c: 4 }, sue);
    await deals.setUser('sue', { active: false });
    try {
      const done = await act(id, 'Divide', mia);
      assert.deepEqual([done.status, done.body.record?.Amount__c], [201, 2.5], done.text);
      const told = await act(id, 'Notify', mia);
      assert.equal(told.status, 201, told.text);
    } finally {
      await deals.setUser('sue', { active: true });
    }
  });

  it('a changed rollup type does not block writes, also with statements that were prepared before', async () => {
    const least = (field: string): Record<string, string> =>
      fieldFile(
        'Deal__c',
        'Least__c',
        `fieldType: rollup\nrollup:\n  childObject: DealLine__c\n  referenceField: Deal__c\n  function: min\n  field: ${field}`,
      );
    const rule =
      'type: SharingRule\napiName: Blank\nobject: Deal__c\nkind: criteria\ncriteria: isBlank(record.Least__c)\nto:\n  role: SalesRep\naccess: read\n';
    await deals.deploy({ ...least('createdAt'), 'objects/Deal__c/sharingRules/Blank.yaml': rule });
    const id = await deal();
    for (const field of ['createdAt', 'Each__c', 'createdAt']) {
      await deals.deploy(least(field));
      for (let n = 0; n < 2; n++) {
        const deleted = await sam.delete(at(id), { etag: (await sam.get(at(id))).headers.get('etag')! });
        assert.equal(deleted.status, 200, deleted.text);
        const back = await sam.post(at(id, '/restore'));
        assert.equal(back.status, 201, `${field}: ${back.text}`);
      }
    }
  });

  describe('deploying during writes', () => {
    const rule = (folder: string, type: string, apiName: string, body: object): Record<string, string> => ({
      [`objects/Deal__c/${folder}/${apiName}.yaml`]: JSON.stringify({ type, apiName, object: 'Deal__c', ...body }),
    });
    const kinds: Record<string, Record<string, string>> = {
      'a validation rule': rule('validationRules', 'ValidationRule', 'Late', {
        condition: 'record.Stage__c == "late"',
        message: 'No.',
      }),
      'a duplicate rule': rule('duplicateRules', 'DuplicateRule', 'Same', {
        action: 'block',
        scope: 'visible',
        threshold: 1,
        match: [{ field: 'Stage__c', method: 'normalized', weight: 1 }],
      }),
      'a record type': rule('recordTypes', 'RecordType', 'Big', { label: 'Big', default: true }),
      'a formula': fieldFile(
        'Deal__c',
        'Each__c',
        'fieldType: formula\nformula:\n  expression: record.Amount__c / record.Parts__c\n  resultType: decimal',
      ),
      'a rollup': fieldFile(
        'Deal__c',
        'Lines__c',
        'fieldType: rollup\nrollup:\n  childObject: DealLine__c\n  referenceField: Deal__c\n  function: count',
      ),
      'a sharing rule': rule('sharingRules', 'SharingRule', 'Some', {
        kind: 'criteria',
        criteria: 'record.Stage__c == "open"',
        to: { role: 'SalesRep' },
        access: 'read',
      }),
      'a state model': {
        ...fieldFile('Deal__c', 'State__c', 'fieldType: picklist\npicklist: {values: [{value: draft}, {value: done}]}'),
        ...rule('stateModels', 'StateModel', 'Life', {
          field: 'State__c',
          initial: 'draft',
          transitions: [{ key: 'finish', label: 'Finish', from: ['draft'], to: 'done' }],
        }),
      },
    };
    for (const [what, files] of Object.entries(kinds))
      it(what, async function () {
        this.timeout(60_000);
        const ids = await Promise.all([deal(), deal(), deal()]);
        let deploying = true;
        let writes = 0;
        const expect = (answer: Answer, ...statuses: number[]): void => {
          writes++;
          assert.ok(statuses.includes(answer.status), answer.text);
        };
        const writer = async (id: string, n: number): Promise<void> => {
          for (let i = 0; deploying || i < 3; i++) {
            const made = await sam.post('/data/Deal__c', {
              name: 'x',
              Stage__c: `${n}.${i}`,
              Amount__c: i,
              Parts__c: 1,
            });
            expect(made, 201);
            const etag = (await sam.get(at(id))).headers.get('etag')!;
            // A rollup that is computed for all records gives them new versions.
            expect(await sam.patch(at(id), { Amount__c: i }, { etag }), 200, 412);
            expect(await sam.post('/data/DealLine__c', { name: 'x', Deal__c: id }), 201);
            expect(await sam.get('/data/Deal__c?take=5'), 200);
            expect(await act(id, 'Notify'), 201, 412);
            const last = await sam.delete(at(made.body.id), { etag: made.headers.get('etag')! });
            expect(last, 200, 412);
            if (last.status === 200) expect(await sam.post(at(made.body.id, '/restore')), 201);
          }
        };
        const work = Promise.all(ids.map(writer));
        work.catch(() => {});
        try {
          await deals.deploy(files);
        } finally {
          deploying = false;
        }
        await work;
        assert.ok(writes > 20);
        for (const id of ids) {
          const { body } = await sam.get(at(id));
          const lines = await sam.get(
            `/data/DealLine__c?includeTotal=true&take=1&where=${encodeURIComponent(JSON.stringify({ Deal__c: id }))}`,
          );
          if ('Lines__c' in body) assert.equal(body.Lines__c, lines.body.total);
        }
      });
  });
});
