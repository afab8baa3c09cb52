/** Changes of fields that decide who has a record: docs/reference/agents.md#risk. */
import assert from 'node:assert/strict';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { judge } from '../../../services/agent/policy/risk.ts';

const reference = (apiName: string) => ({ apiName, fieldType: 'reference', referenceTo: ['User'] });
const DEAL = {
  apiName: 'Deal__c',
  fields: { Agent__c: reference('Agent__c'), Witness__c: reference('Witness__c') },
  sharingRules: [{ apiName: 'ByAgent', through: 'Agent__c', access: 'readWrite' }],
  stateModel: null,
  actions: [],
};
const snapshot = { objects: { Deal__c: DEAL } } as unknown as Snapshot;

describe('the risk of a change', () => {
  const risk = (operationId: string, body: object): string =>
    judge({ operationId, risk: 'medium', pathParameters: { objectApiName: 'Deal__c' }, body }, snapshot, false).risk;

  it('is high where it sets or clears a field through which a rule shares the record', () => {
    for (const operationId of ['data.records.update', 'data.records.upsert']) {
      assert.equal(risk(operationId, { Agent__c: 'a user' }), 'high');
      assert.equal(risk(operationId, { Agent__c: null }), 'high');
      assert.equal(risk(operationId, { ownerId: 'a user' }), 'high');
      assert.equal(risk(operationId, { Witness__c: 'a user' }), 'medium');
    }
  });
});
