import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Principal } from '../../../lib/access/types.ts';
import type { ObjectMeta, PermissionBundle } from '../../../lib/schema/snapshot.ts';
import { explain, type Question, type Subject } from '../../../services/data/explain/explain.ts';
import {
  aBundle,
  aField,
  anObject,
  aPrincipal,
  aProfile,
  aSnapshot,
  TENANT_ID,
  USER_ID,
} from '../../support/snapshots.ts';

const OTHER = '01939f6e-0000-7000-8000-0000000000bb';
const FIELDS = [aField('Amount__c', 'currency'), aField('Sum__c', 'autoNumber')];

interface Given {
  object?: Partial<ObjectMeta>;
  profile?: PermissionBundle;
  sets?: readonly PermissionBundle[];
  principal?: Partial<Principal>;
  ownerId?: string;
  scopes?: Subject['scopes'];
}

/** The steps that deny, with their remedies, and who grants the others. */
function ask(question: Partial<Question>, given: Given = {}) {
  const object = anObject('Bill__c', FIELDS, { sharingDefault: 'private', ...given.object });
  const all = aProfile([object]);
  const snapshot = aSnapshot([object], [given.profile ?? all], given.sets ?? []);
  const published = aSnapshot([{ ...object, published: true }], [all]);
  const principal = aPrincipal({
    permissionSetApiNames: (given.sets ?? []).map((set) => set.apiName),
    ...given.principal,
  });
  const { allowed, steps } = explain(
    {
      view: {
        tenantId: TENANT_ID,
        snapshot,
        access: accessFor(snapshot, principal),
        key: '',
        metadataVersion: 1,
        accessVersion: 1,
      },
      scopes: given.scopes === undefined ? ['data:read', 'data:write', 'data:delete', 'actions:execute'] : given.scopes,
      object,
      shown: accessFor(published, aPrincipal()).objects['Bill__c']!,
      known: accessFor(published, aPrincipal()).objects,
      record: { id: OTHER, ownerId: given.ownerId ?? USER_ID, values: {}, owners: {}, shares: [], parents: {} },
      stored: {},
      transition: null,
      misplaces: false,
    },
    { operation: 'read', field: null, transitionKey: null, ...question },
  );
  const step = (layer: string) => steps.find((item) => item.layer === layer)!;
  return { allowed, denied: steps.filter((s) => s.result === 'deny').map((s) => s.layer), step };
}

describe('an explanation of access', () => {
  it('covers every applicable layer', () => {
    const { allowed, step } = ask({ operation: 'update', field: 'Amount__c' });
    assert.equal(allowed, true);
    for (const layer of ['scope', 'publication', 'objectPermission', 'fieldPermission', 'sharing'])
      assert.equal(step(layer).result, 'pass', layer);
    for (const layer of ['recordState', 'agentPolicy']) assert.equal(step(layer).result, 'notApplicable', layer);
  });

  it('reports an unpublished object', () => {
    const { denied, step } = ask({}, { object: { published: false } });
    assert.ok(denied.includes('publication'));
    assert.match(step('publication').remedy!, /api\.published: true in CustomObject Bill__c/);
  });

  it('reports a deactivated user, and one without API access', () => {
    assert.match(ask({}, { principal: { active: false } }).step('objectPermission').remedy!, /Activate the user/);
    assert.match(
      ask({}, { profile: aBundle('Standard', { system: [] }) }).step('objectPermission').remedy!,
      /apiEnabled/,
    );
  });

  it('names the profile and every permission set that grants the operation', () => {
    const rights = { create: false, read: true, update: true, delete: false, viewAll: false, modifyAll: false };
    const sets = [
      aBundle('Editors', { objects: { Bill__c: rights } }),
      aBundle('Readers', { objects: { Bill__c: { ...rights, update: false } } }),
      aBundle('Everything', { system: ['modifyAllData'] }),
      aBundle('Nothing'),
    ];
    const names = (operation: Question['operation']) =>
      ask({ operation }, { sets })
        .step('objectPermission')
        .grantedBy.map(({ apiName }) => apiName);
    assert.deepEqual(names('update'), ['Standard', 'Editors', 'Everything']);
    assert.deepEqual(names('read'), ['Standard', 'Editors', 'Everything', 'Readers']);
    assert.deepEqual(names('create'), ['Standard', 'Everything']);
  });

  it('does not blame a field for what its object forbids', () => {
    const readOnly = { create: false, read: true, update: false, delete: false, viewAll: false, modifyAll: false };
    const profile = aBundle('Standard', {
      objects: { Bill__c: readOnly },
      fields: { 'Bill__c.Amount__c': { read: true, edit: true } },
    });
    assert.deepEqual(ask({ operation: 'update', field: 'Amount__c' }, { profile }).denied, ['objectPermission']);
    assert.deepEqual(ask({ operation: 'update', field: 'name' }, { profile }).denied, ['objectPermission']);
    assert.deepEqual(ask({ operation: 'update', field: 'Sum__c' }, { profile }).denied, [
      'objectPermission',
      'fieldPermission',
    ]);
  });

  it('lets only users with full access to a record change its owner', () => {
    const shared = { object: { sharingDefault: 'read' as const }, ownerId: OTHER };
    assert.deepEqual(ask({ operation: 'read' }, shared).denied, []);
    assert.deepEqual(ask({ operation: 'update', field: 'ownerId' }, shared).denied, ['sharing']);
    assert.match(ask({ operation: 'update', field: 'ownerId' }, shared).step('sharing').remedy!, /Only its owner/);
    assert.match(
      ask({ operation: 'update' }, shared).step('sharing').remedy!,
      /can read the record, but may not change/,
    );
    assert.deepEqual(ask({ operation: 'update', field: 'ownerId' }).denied, []);
  });

  it('does not include the scopes of another user', () => {
    assert.equal(ask({ operation: 'delete' }, { scopes: null }).step('scope').result, 'notApplicable');
    assert.deepEqual(ask({ operation: 'delete' }, { scopes: ['data:read'] }).denied, ['scope']);
  });
});
