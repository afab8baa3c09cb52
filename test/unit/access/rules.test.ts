import assert from 'node:assert/strict';
import { capabilities, requireObject } from '../../../lib/access/decide.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Access } from '../../../lib/access/types.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { planGet } from '../../../lib/query/plan.ts';
import type { ObjectPermission, PermissionBundle } from '../../../lib/schema/snapshot.ts';
import { aBundle, aField, anObject, aPrincipal, aSnapshot } from '../../support/snapshots.ts';

const NONE: ObjectPermission = {
  create: false,
  read: false,
  update: false,
  delete: false,
  viewAll: false,
  modifyAll: false,
};
const invoice = anObject('Invoice__c', [
  aField('Amount__c', 'currency'),
  aField('Number__c', 'autoNumber'),
  aField('Total__c', 'formula'),
]);
const draft = anObject('Draft__c', [], { published: false });
const numbered = anObject('Order__c', [aField('name', 'autoNumber')]);
const user = anObject('User', [
  aField('username', 'text'),
  aField('displayName', 'text'),
  aField('email', 'email'),
  aField('profileApiName', 'text'),
  aField('Level__c', 'integer'),
]);

const accessOf = (profile: Partial<PermissionBundle>, ...sets: Partial<PermissionBundle>[]): Access => {
  const bundles = sets.map((set, index) => aBundle(`Set${index}`, { system: [], ...set }));
  const snapshot = aSnapshot([invoice, draft, numbered, user], [aBundle('Standard', profile)], bundles);
  return accessFor(snapshot, aPrincipal({ permissionSetApiNames: bundles.map((bundle) => bundle.apiName) }));
};
const reads = { Invoice__c: { ...NONE, read: true } };
const edits = { Invoice__c: { ...NONE, read: true, update: true } };
const AMOUNT = 'Invoice__c.Amount__c';

describe('permissions', () => {
  it('of a user are the union of the profile and all permission sets', () => {
    const access = accessOf(
      { objects: reads },
      { objects: { Invoice__c: { ...NONE, create: true } } },
      { fields: { [AMOUNT]: { read: true, edit: false } } },
      { fields: { [AMOUNT]: { read: false, edit: true } }, actions: ['Invoice__c.send'] },
    );
    const { permission, fields } = access.objects['Invoice__c']!;
    assert.deepEqual([permission.create, permission.read, permission.update], [true, true, false]);
    assert.deepEqual(fields['Amount__c'], { read: true, edit: true });
    assert.ok(access.actions.has('Invoice__c.send'));
  });

  it('on an object without read do not make it visible', () => {
    assert.equal(accessOf({ objects: { Invoice__c: { ...NONE, create: true } } }).objects['Invoice__c'], undefined);
  });

  it('do not reach an object that is not published', () => {
    assert.equal(accessOf({ system: ['modifyAllData'] }).objects['Draft__c'], undefined);
  });

  it('are not found under inherited JavaScript property names', () => {
    const access = accessOf({ objects: reads });
    for (const name of ['constructor', 'toString', '__proto__']) {
      assert.equal(access.objects[name], undefined);
      assert.equal(access.objects['Invoice__c']!.fields[name], undefined);
    }
  });

  it('end with the account', () => {
    const snapshot = aSnapshot([invoice], [aBundle('Standard', { system: ['modifyAllData'] })]);
    const access = accessFor(snapshot, aPrincipal({ active: false }));
    assert.deepEqual([Object.keys(access.objects), access.system.size], [[], 0]);
  });

  it('of a deleted profile are empty', () => {
    const access = accessFor(aSnapshot([invoice]), aPrincipal({ profileApiName: 'Gone' }));
    assert.deepEqual(Object.keys(access.objects), []);
  });

  it('of two users with the same assignment are one object in memory', () => {
    const snapshot = aSnapshot([invoice]);
    const [sam, sue] = ['sam', 'sue'].map((userId) => accessFor(snapshot, aPrincipal({ userId })));
    assert.equal(sam!.objects, sue!.objects);
    assert.equal(sam!.hash, sue!.hash);
    assert.notEqual(sam!.principal.userId, sue!.principal.userId);
  });
});

describe('fields', () => {
  it('maintained by the platform, and the name, are readable with the object; others need a permission', () => {
    const names = accessOf({ objects: reads }).objects['Invoice__c']!.readable.map((field) => field.apiName);
    assert.deepEqual(names, [
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
  });

  it('editable with update alone are name and owner', () => {
    const { fields } = accessOf({ objects: edits }).objects['Invoice__c']!;
    const editable = Object.keys(fields).filter((name) => fields[name]!.edit);
    assert.deepEqual(editable, ['ownerId', 'name']);
    const readOnly = accessOf({ objects: reads }).objects['Invoice__c']!.fields;
    assert.ok(!Object.values(readOnly).some((entry) => entry.edit));
  });

  it('that the platform numbers or computes are not editable', () => {
    const access = accessOf({ system: ['modifyAllData'] });
    const { fields } = access.objects['Invoice__c']!;
    assert.deepEqual(fields['Number__c'], { read: true, edit: false });
    assert.deepEqual(fields['Total__c'], { read: true, edit: false });
    assert.deepEqual(access.objects['Order__c']!.fields['name'], { read: true, edit: false });
  });

  it('are readable with viewAllData and editable with modifyAllData', () => {
    const viewer = accessOf({ system: ['viewAllData'] }).objects['Invoice__c']!;
    assert.deepEqual([viewer.permission.read, viewer.permission.update], [true, false]);
    assert.deepEqual(viewer.fields['Amount__c'], { read: true, edit: false });
    const admin = accessOf({ system: ['modifyAllData'] }).objects['Invoice__c']!;
    assert.deepEqual(admin.fields['Amount__c'], { read: true, edit: true });
  });
});

describe('users', () => {
  it('are visible by id and label with the API permission', () => {
    const { permission, readable } = accessOf({ system: ['apiEnabled'] }).objects['User']!;
    assert.deepEqual(
      readable.map((field) => field.apiName),
      ['id', 'name', 'displayName'],
    );
    assert.deepEqual([permission.create, permission.update, permission.delete], [false, false, false]);
  });

  it('are written with manageUsers, and cannot be deleted', () => {
    const manager = accessOf({ system: ['manageUsers'] }).objects['User']!;
    assert.deepEqual([manager.permission.create, manager.permission.update], [true, true]);
    assert.deepEqual(manager.fields['profileApiName'], { read: true, edit: true });
    assert.equal(manager.fields['Level__c'], undefined, 'a custom field takes its own permission');
    for (const edit of [false, true]) {
      const fields = { 'User.Level__c': { read: true, edit } };
      const { Level__c } = accessOf({ system: ['manageUsers'], fields }).objects['User']!.fields;
      assert.deepEqual(Level__c, { read: true, edit });
      assert.equal(accessOf({ system: ['apiEnabled'], fields }).objects['User']!.fields['Level__c'], undefined);
    }
    const powerful = accessOf({ system: ['modifyAllData'] }).objects['User']!;
    assert.deepEqual([powerful.permission.create, powerful.permission.update], [false, false]);
    for (const access of [manager, powerful]) assert.equal(access.permission.delete, false);
  });
});

describe('a decision', () => {
  const access = accessOf({ objects: reads });

  it('is yes, denied, or absent', () => {
    assert.equal(requireObject(access, 'Invoice__c', 'read'), access.objects['Invoice__c']);
    assert.throws(() => requireObject(access, 'Invoice__c', 'create'), { code: 'OBJECT_PERMISSION_DENIED' });
    for (const name of ['Draft__c', 'Order__c', 'Nothing__c', 'constructor'])
      assert.throws(() => requireObject(access, name, 'read'), { code: 'OBJECT_NOT_FOUND' });
  });

  it('becomes an error of the catalogue', () => {
    assert.throws(
      () => requireObject(access, 'Invoice__c', 'delete'),
      (error) =>
        error instanceof PlatformError &&
        error.code === 'OBJECT_PERMISSION_DENIED' &&
        error.details?.['operation'] === 'delete',
    );
    const [hidden, absent] = ['Draft__c', 'Nothing__c'].map((name) => {
      try {
        return requireObject(access, name, 'read');
      } catch (error) {
        return (error as PlatformError).toWire();
      }
    });
    assert.deepEqual(hidden, absent);
  });
});

describe('capabilities', () => {
  const all = accessOf({ objects: { Invoice__c: { ...NONE, read: true, create: true, delete: true } } });

  it('are all false with data:read alone', () => {
    assert.deepEqual(capabilities(all, 'Invoice__c', ['data:read']), {
      creatable: false,
      updateable: false,
      deletable: false,
      editable: false,
    });
  });

  it('are the intersection of scopes and permissions', () => {
    assert.deepEqual(capabilities(all, 'Invoice__c', ['data:read', 'data:write']), {
      creatable: true,
      updateable: false,
      deletable: false,
      editable: true,
    });
    assert.equal(capabilities(all, 'Invoice__c', ['data:delete']).deletable, true);
    assert.equal(capabilities(all, 'Nothing__c', ['data:delete', 'data:write']).deletable, false);
  });
});

describe('a constrained plan', () => {
  it('finds nothing in an object that the user may not read', () => {
    const access = accessOf({ objects: reads });
    const view = { access, snapshot: aSnapshot([invoice, numbered]), now: 0, timezone: 'UTC' };
    const id = '01939f6e-0000-7000-8000-000000000001';
    assert.equal(constrain(planGet(id, null, invoice, view), access).sharing, null);
    assert.deepEqual(constrain(planGet(id, null, numbered, view), access).sharing, { kind: 'false' });
  });
});
