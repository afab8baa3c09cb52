/**
 * Why an operation on a record is allowed or not: every layer of access in its order, looked up in the same rules that
 * decide when the operation is carried out. Pure. Source: docs/reference/access.md#explanations.
 */

import type { LAYERS, OPERATIONS_EXPLAINED } from '../../../contracts/data/explain.ts';
import { decideSharing, NEEDS, type RecordOperation } from '../../../lib/access/decide.ts';
import { permissionGiven } from '../../../lib/access/rules.ts';
import { type Grant, parentFields, type SharedRecord } from '../../../lib/access/sharing.ts';
import type { Access, ObjectAccess, ScopeSet } from '../../../lib/access/types.ts';
import type { Scope } from '../../../lib/operation.ts';
import { fieldOf } from '../../../lib/schema/lookup.ts';
import { isWritable } from '../../../lib/schema/record-types.ts';
import type { FieldMeta, ObjectMeta, PermissionBundle } from '../../../lib/schema/snapshot.ts';
import { own } from '../tenants.ts';
import {
  type Act,
  closedField,
  closedObject,
  guardHolds,
  guardMessage,
  isPermitted,
  notPermitted,
  startsIn,
  stateIn,
  storedFacts,
  visibleModel,
  wrongState,
} from '../transitions/acts.ts';
import type { View } from '../view.ts';

type Layer = (typeof LAYERS)[number];
type GrantedBy = Pick<Grant, 'kind' | 'apiName'>;

export interface Step {
  readonly layer: Layer;
  readonly result: 'pass' | 'deny' | 'notApplicable';
  readonly grantedBy: readonly GrantedBy[];
  readonly remedy: string | null;
}

export interface Question {
  readonly operation: (typeof OPERATIONS_EXPLAINED)[number];
  readonly field: string | null;
  readonly transitionKey: string | null;
}

export interface Subject {
  /** Whose access is explained. */
  readonly view: View;
  /** Scopes of the connection; null: another user's, which is not known. */
  readonly scopes: ScopeSet | null;
  readonly object: ObjectMeta;
  /** The object as whoever asks sees it: what does not exist for them is not explained. */
  readonly shown: ObjectAccess;
  /** All objects as whoever asks sees them. */
  readonly known: Access['objects'];
  readonly record: SharedRecord;
  /** Stored values of the fields that decide about transitions. */
  readonly stored: Readonly<Record<string, unknown>>;
  /** Null: no transition is asked about, or there is none of this name for whoever asks. */
  readonly act: Act | null;
  /** It puts a record under a parent that the user may not edit. */
  readonly misplaces: boolean;
}

const SCOPES: Readonly<Record<Question['operation'], Scope>> = {
  read: 'data:read',
  create: 'data:write',
  update: 'data:write',
  delete: 'data:delete',
  transition: 'actions:execute',
};

/** The operation as decisions know it: who a record belongs to is not for everybody who may change it. */
const decided = ({ operation, field }: Question): RecordOperation =>
  operation === 'update' && field === 'ownerId' ? 'changeOwner' : operation;

export function explain(subject: Subject, question: Question): { allowed: boolean; steps: Step[] } {
  const { act } = subject;
  const steps = [
    ofScope(subject, question),
    ofPublication(subject),
    ofObject(subject, question, act),
    ofField(subject, question, act),
    ofSharing(subject, question),
    ofState(subject, question, act),
    step('agentPolicy', 'notApplicable'),
  ];
  return { allowed: steps.every((item) => item.result !== 'deny'), steps };
}

const step = (layer: Layer, result: 'pass' | 'notApplicable', grantedBy: readonly GrantedBy[] = []): Step => ({
  layer,
  result,
  grantedBy,
  remedy: null,
});
const deny = (layer: Layer, remedy: string): Step => ({ layer, result: 'deny', grantedBy: [], remedy });

function ofScope({ scopes }: Subject, { operation }: Question): Step {
  const scope = SCOPES[operation];
  if (scopes === null) return step('scope', 'notApplicable');
  if (scopes.includes(scope)) return step('scope', 'pass');
  return deny(
    'scope',
    `Sign in again and ask for the scope ${scope}; the client application must be allowed to have it (ExternalClient, scopes).`,
  );
}

function ofPublication({ object }: Subject): Step {
  if (object.published) return step('publication', 'pass');
  return deny('publication', `Publish the object: api.published: true in CustomObject ${object.apiName}.`);
}

function ofObject(subject: Subject, { operation }: Question, act: Act | null): Step {
  const { view, object } = subject;
  const { access } = view;
  const { permission } = NEEDS[operation];
  if (!access.principal.active) return deny('objectPermission', 'The user is deactivated: activate the user.');
  if (!access.system.has('apiEnabled'))
    return deny('objectPermission', 'Give the system permission apiEnabled in the profile or a permission set.');
  if (!own(access.objects, object.apiName)?.permission[permission]) {
    const remedy =
      object.apiName !== 'User'
        ? `Give ${permission} on ${object.apiName} in the profile or a permission set of the user.`
        : permission === 'delete'
          ? 'Users are deactivated, never deleted.'
          : 'Give the system permission manageUsers in the profile or a permission set.';
    return deny('objectPermission', remedy);
  }
  if (act && !isPermitted(act, access))
    return deny('objectPermission', `${notPermitted(act)} Add it to the actions of the profile or a permission set.`);
  // What comes along is created with the rights of the caller. A hidden object is not named.
  const closed = act && closedObject(act, access);
  if (closed !== null)
    return deny(
      'objectPermission',
      `The transition makes a record${own(subject.known, closed) ? ` of ${closed}` : ' of another object'}: give create on that object.`,
    );
  const given = bundlesThat(access, (bundle) => permissionGiven(object, [bundle])[permission]);
  const acting = act?.meta.permission;
  const more = acting == null ? [] : bundlesThat(access, (bundle) => bundle.actions.includes(acting));
  const names = new Set(given.map(({ apiName }) => apiName));
  return step('objectPermission', 'pass', [...given, ...more.filter(({ apiName }) => !names.has(apiName))]);
}

const bundlesThat = ({ bundles }: Access, gives: (bundle: PermissionBundle) => boolean): GrantedBy[] =>
  bundles.flatMap(({ kind, bundle }) => (gives(bundle) ? [{ kind, apiName: bundle.apiName }] : []));

const noSuchField = (name: string): string =>
  `There is no field ${name} that can be read: check the name, or ask an administrator whether it needs read permission.`;

function ofField(subject: Subject, { operation, field: name }: Question, act: Act | null): Step {
  const { view, object, shown } = subject;
  const known = own(view.access.objects, object.apiName);
  const model = act?.kind === 'transition' ? visibleModel(shown) : null;
  if (model && known && !visibleModel(known))
    return deny('fieldPermission', `Give read on the state, ${object.apiName}.${model.field}.`);
  const closed = act && closedField(act, view.access);
  if (closed !== null) {
    const [made, item] = closed.split('.') as [string, string];
    const place = own(own(subject.known, made)?.fields ?? {}, item)?.read ? closed : 'each of its fields';
    return deny('fieldPermission', `The transition makes a record and sets its fields: give edit on ${place}.`);
  }
  if (name === null) return step('fieldPermission', 'notApplicable');
  const field = own(shown.fields, name)?.read ? fieldOf(object, name) : undefined;
  if (!field) return deny('fieldPermission', noSuchField(name));
  if (!known) return step('fieldPermission', 'notApplicable');
  const writes = operation !== 'read';
  const given = grantsOfField(view.access, object, field, operation);
  if (!own(known.fields, name)?.read) return deny('fieldPermission', `Give read on ${object.apiName}.${name}.`);
  if (!writes) return step('fieldPermission', 'pass', given);
  if (!isWritable(object, field)) return deny('fieldPermission', `Nobody writes ${name}: the platform works it out.`);
  // Without the permission on the object there is none on its fields; that layer says so.
  if (given.length > 0) return step('fieldPermission', 'pass', given);
  if (followsObject(object, field)) return step('fieldPermission', 'notApplicable');
  return deny('fieldPermission', `Give edit on ${object.apiName}.${name} in the profile or a permission set.`);
}

const followsObject = (object: ObjectMeta, { system, apiName }: FieldMeta): boolean =>
  system || apiName === object.nameField || object.apiName === 'User';

/** The bundles that let a field be read, or written. */
function grantsOfField(
  access: Access,
  object: ObjectMeta,
  field: FieldMeta,
  operation: Question['operation'],
): readonly GrantedBy[] {
  const permission = NEEDS[operation].permission;
  const key = `${object.apiName}.${field.apiName}`;
  return bundlesThat(access, (bundle) => {
    if (followsObject(object, field) && permissionGiven(object, [bundle])[permission]) return true;
    if (bundle.system.includes('modifyAllData')) return true;
    if (operation === 'read' && bundle.system.includes('viewAllData')) return true;
    const given = own(bundle.fields, key);
    return given !== undefined && (given.edit || (operation === 'read' && given.read));
  });
}

function ofSharing(subject: Subject, question: Question): Step {
  const { view, object, record } = subject;
  // Who may not read the object at all is told by another layer; what sharing would give then has no meaning.
  if (!own(view.access.objects, object.apiName)) return step('sharing', 'notApplicable');
  const operation = decided(question);
  if (operation === 'create' && parentFields(object).length === 0) return step('sharing', 'notApplicable');
  const decision = decideSharing(view.access, object.apiName, operation, record);
  if (!decision.allowed)
    return deny(
      'sharing',
      decision.parent ? parentRemedy(subject, decision.parent) : sharingRemedy(subject, operation, decision.code),
    );
  if (subject.misplaces)
    return deny('sharing', 'The transition puts a record under another one: let the user edit that one.');
  const { grantedBy } = decision;
  // What leads to a parent is told without the shares of the parent.
  if (operation === 'create') return step('sharing', 'pass', distinct(grantedBy));
  return step('sharing', 'pass', shownGrants(subject, grantedBy, operation));
}

/** A record under parents that control its sharing is made by those who may edit all of them. */
function parentRemedy({ shown, known }: Subject, field: FieldMeta): string {
  const apiName = field.referenceTo[0]!;
  const isNamed = own(known, apiName) !== undefined && own(shown.fields, field.apiName)?.read === true;
  return `Let the user edit ${isNamed ? `the ${apiName} record that ${field.apiName} names` : 'every parent of the record'}.`;
}

/** Manual shares are told by the principal that they are for. */
function shownGrants({ view, record }: Subject, grants: readonly Grant[], operation: RecordOperation): GrantedBy[] {
  const { principal, circle } = view.access;
  const { level } = NEEDS[operation];
  return distinct(
    grants.flatMap(({ kind, apiName }): GrantedBy[] => {
      if (kind !== 'manualShare') return [{ kind, apiName }];
      return record.shares
        .filter(({ access }) => level === 'read' || access === 'edit')
        .flatMap(({ principalType, principalId }) => {
          if (principalType === 'user')
            return principalId === principal.userId ? [{ kind, apiName: principal.username }] : [];
          const mine = principalType === 'role' ? circle.roles.includes(principalId) : circle.groups.has(principalId);
          return mine ? [{ kind, apiName: principalId }] : [];
        });
    }),
  );
}

const distinct = (grants: readonly (GrantedBy | Grant)[]): GrantedBy[] => [
  ...new Map(grants.map(({ kind, apiName }) => [`${kind} ${apiName}`, { kind, apiName }])).values(),
];

function sharingRemedy({ object }: Subject, operation: RecordOperation, code: string): string {
  const { apiName } = object;
  const { level } = NEEDS[operation];
  if (apiName === 'User') return 'Give the system permission manageUsers in the profile or a permission set.';
  if (parentFields(object).length > 0)
    return `Records of ${apiName} follow their parents: let the user ${level === 'read' ? 'read' : 'edit'} every parent of the record.`;
  const start =
    code === 'RECORD_ACCESS_DENIED' ? 'The user reads the record and may not' : 'The user does not reach the record to';
  switch (level) {
    case 'read':
      return `${start} read it: share it with the user, a role or a group, add a sharing rule of ${apiName}, or widen its sharingDefault.`;
    case 'edit':
      return `${start} change it: share it with access edit, add a sharing rule of ${apiName} with access readWrite, or make the user its owner.`;
    case 'full':
      return `${start} delete it, give it away or share it: that is for its owner, users above the owner, and who has modifyAll on ${apiName}.`;
  }
}

function ofState(subject: Subject, { operation, field, transitionKey }: Question, act: Act | null): Step {
  const { view, object, shown, stored } = subject;
  const model = visibleModel(shown);
  if (operation === 'update' && model && field === model.field && !model.allowDirectEdit)
    return deny('recordState', `${field} changes by transitions only: execute one of them.`);
  if (operation !== 'transition') return step('recordState', 'notApplicable');
  if (!act)
    return deny('recordState', `There is no transition or action ${transitionKey} here: list those that there are.`);
  const state = stateIn(shown, stored);
  if (!startsIn(act, state))
    return deny('recordState', `${wrongState(act)} The record is in ${state ?? 'no state'}: take it there first.`);
  if (!guardHolds(act, storedFacts(view, object, stored))) return deny('recordState', guardMessage(act));
  return step('recordState', 'pass');
}
