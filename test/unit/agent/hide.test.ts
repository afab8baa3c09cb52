/** A reader's view of requests and previews: readable fields and records, and a marker in place of others. */
import assert from 'node:assert/strict';
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import { HIDDEN, hideFields, hidePreview } from '../../../services/agent/approvals/hide.ts';

const objectWith = (...readable: string[]): ObjectAccess =>
  ({
    object: { fields: Object.fromEntries([...readable, 'Margin__c'].map((name) => [name, {}])) },
    fields: Object.fromEntries(readable.map((name) => [name, { read: true, edit: false }])),
  }) as unknown as ObjectAccess;

const access = { objects: { Invoice__c: objectWith('name', 'Amount__c') } } as unknown as Access;
const preview = {
  checkOnly: true,
  valid: false,
  record: { name: 'INV-1', Amount__c: '10.00', Margin__c: '3.00', _etag: '"1"' },
  before: { name: 'INV-1', Amount__c: '9.00', Margin__c: '2.00' },
  errors: [
    {
      pointer: '/Margin__c',
      field: 'Margin__c',
      code: 'FIELD_OUT_OF_RANGE',
      message: '3.00 is too much.',
      params: { max: 2 },
    },
    { pointer: '/Amount__c', field: 'Amount__c', code: 'FIELD_OUT_OF_RANGE', message: '10 is too much.', params: {} },
    { pointer: '', field: null, code: 'VALIDATION_RULE', message: 'Amounts are positive.', params: {} },
  ],
  duplicates: [
    { ruleApiName: 'Invoice__c.Same', matches: [{ id: 'a', displayName: 'INV-2', record: { name: 'INV-2' } }] },
  ],
  effects: [
    { kind: 'update', objectApiName: 'Invoice__c', id: 'a', fields: ['Amount__c', 'Margin__c'] },
    { kind: 'update', objectApiName: 'Salary__c', id: 'b', fields: ['Amount__c'] },
  ],
  approvalRequired: true,
  surprise: { Margin__c: 3 },
};

describe('the request of an agent, as a reader sees it', () => {
  it('contains only readable fields', () => {
    const body = { Amount__c: 10, Margin__c: 3, constructor: 'x', Nowhere__c: null };
    assert.deepEqual(hideFields(body, access.objects['Invoice__c']), {
      Amount__c: 10,
    });
    assert.deepEqual(hideFields(body, undefined), {});
    assert.equal(hideFields('text', access.objects['Invoice__c']), HIDDEN);
  });

  it('hides the same fields everywhere in its preview', () => {
    const shown = hidePreview(preview, 'Invoice__c', { access, readsRecord: true, sees: ({ id }) => id === 'a' });
    assert.deepEqual(shown['record'], { name: 'INV-1', Amount__c: '10.00', _etag: '"1"' });
    assert.deepEqual(shown['before'], { name: 'INV-1', Amount__c: '9.00' });
    assert.deepEqual(shown['effects'], [
      { kind: 'update', objectApiName: 'Invoice__c', id: 'a', fields: ['Amount__c'] },
      { kind: 'update', objectApiName: HIDDEN, id: null, fields: [] },
    ]);
    assert.doesNotMatch(JSON.stringify(shown), /Margin|OUT_OF_RANGE.*OUT_OF_RANGE|3\.00|2\.00|INV-2|"max"|Salary/);
    assert.match(JSON.stringify(shown), /10 is too much\..*Amounts are positive\./);
    assert.deepEqual([shown['valid'], shown['approvalRequired'], shown['surprise']], [false, true, HIDDEN]);
    assert.equal((shown['errors'] as { code: string }[])[0]?.code, 'FIELD_UNKNOWN');
  });

  it('contains nothing of a record hidden by sharing', () => {
    const unseen = { access, readsRecord: false, sees: () => false };
    const shown = hidePreview(preview, 'Invoice__c', unseen);
    assert.deepEqual([shown['record'], shown['before']], [HIDDEN, HIDDEN]);
    assert.equal(hidePreview({ record: null }, 'Invoice__c', unseen)['record'], null);
  });
});
