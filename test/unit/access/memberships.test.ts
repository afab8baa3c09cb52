import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Principal } from '../../../lib/access/types.ts';
import type { GroupMeta, RoleMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { aPrincipal, aSnapshot } from '../../support/snapshots.ts';

const role = (apiName: string, parent: string | null): RoleMeta => ({ apiName, label: apiName, parent });
const group = (apiName: string, members: Partial<GroupMeta['members']>): GroupMeta => ({
  apiName,
  label: apiName,
  members: { roles: [], groups: [], users: [], ...members },
});
const byName = <T extends { apiName: string }>(list: readonly T[]): Record<string, T> =>
  Object.fromEntries(list.map((item) => [item.apiName, item]));

const COMPANY: Snapshot = {
  ...aSnapshot([]),
  roles: byName([role('Boss', null), role('Manager', 'Boss'), role('Rep', 'Manager'), role('Clerk', 'Boss')]),
  groups: byName([
    group('Managers', { roles: ['Manager'] }),
    group('Named', { users: ['SAM@test.example', 'nobody@test.example'] }),
    group('Outer', { groups: ['Managers', 'Named'] }),
    group('Outermost', { groups: ['Outer'] }),
    group('Empty', {}),
  ]),
};

const circleOf = (roleApiName: string | null, more: Partial<Principal> = {}, snapshot = COMPANY) => {
  const { memberships } = accessFor(snapshot, aPrincipal({ roleApiName, username: 'x@test.example', ...more }));
  return { roles: [...memberships.roles].sort(), groups: [...memberships.groups].sort() };
};

describe('members of roles and groups', () => {
  it('a user receives grants of their role and of every role below it', () => {
    assert.deepEqual(circleOf('Boss').roles, ['Boss', 'Clerk', 'Manager', 'Rep']);
    assert.deepEqual(circleOf('Manager').roles, ['Manager', 'Rep']);
    assert.deepEqual(circleOf('Rep').roles, ['Rep']);
    for (const none of [null, 'Gone', 'constructor']) assert.deepEqual(circleOf(none).roles, []);
  });

  it('a group has the users it names, those of its roles and above, and the members of its groups', () => {
    assert.deepEqual(circleOf('Manager').groups, ['Managers', 'Outer', 'Outermost']);
    assert.deepEqual(circleOf('Boss').groups, ['Managers', 'Outer', 'Outermost']);
    assert.deepEqual(circleOf('Rep').groups, []);
    assert.deepEqual(circleOf(null, { username: 'sam@Test.example' }).groups, ['Named', 'Outer', 'Outermost']);
  });

  it('terminates on cycles, which deployments refuse', () => {
    const circular: Snapshot = {
      ...COMPANY,
      roles: byName([role('A', 'B'), role('B', 'A')]),
      groups: byName([group('X', { groups: ['Y'], roles: ['A'] }), group('Y', { groups: ['X'] })]),
    };
    assert.deepEqual(circleOf('A', {}, circular), { roles: ['A', 'B'], groups: ['X', 'Y'] });
  });
});
