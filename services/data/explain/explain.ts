/**
 * Why an operation on a record is allowed or refused: every layer of access in its order, by the same rules that decide
 * when the operation is executed. Pure. Source: docs/reference/access.md#explanations.
 */

import type { LAYERS, OPERATIONS_EXPLAINED } from '../../../contracts/data/explain.ts';
import { decideSharing, NEEDS, type RecordOperation } from '../../../lib/access/decide.ts';
import { permissionGiven } from '../../../lib/access/rules.ts';
import { type Grant, parentFields, type SharedRecord } from '../../../lib/access/sharing.ts';
import type { Access, ObjectAccess, ScopeSet } from '../../../lib/access/types.ts';
import { MANAGE_USERS_REMEDY, userObjectRemedy } from '../../../lib/access/user-object.ts';
import { newRequestBudget } from '../../../lib/expression/evaluate.ts';
import type { Scope } from '../../../lib/operation.ts';
import { fieldOf, ownEntry } from '../../../lib/schema/lookup.ts';
import { isWritable } from '../../../lib/schema/record-types.ts';
import { sharesThrough } from '../../../lib/schema/shares-through.ts';
import type { FieldMeta, ObjectMeta, PermissionBundle } from '../../../lib/schema/snapshot.ts';
import { isUserObject } from '../../../lib/schema/user-object.ts';
import {
  closedField,
  closedObject,
  guardHolds,
  guardMessage,
  isPermitted,
  notPermitted,
  startsIn,
  stateIn,
  storedFacts,
  type TransitionOrAction,
  visibleModel,
  wrongState,
} from '../transitions/transitions-and-actions.ts';
import type { View } from '../view.ts';

type Layer = (typeof LAYERS)[number];
type GrantedBy = Pick<Grant, 'kind' | 'apiName'>;

interface Step {
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
  /** User whose access is explained. */
  readonly view: View;
  /** Scopes of the connection; null when another user is asked about, whose connections are unknown. */
  readonly scopes: ScopeSet | null;
  readonly object: ObjectMeta;
  /** The object as the caller sees it: what is hidden from the caller is not explained. */
  readonly shown: ObjectAccess;
  /** All objects as the caller sees them. */
  readonly known: Access['objects'];
  readonly record: SharedRecord;
  /** Stored values of the fields that decide about transitions. */
  readonly stored: Readonly<Record<string, unknown>>;
  /** Null: no transition is asked about, or the caller sees none of this name. */
  readonly transition: TransitionOrAction | null;
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

/** The operation that is decided: to change the owner needs more than to change other fields. */
const decidedOperation = ({ operation, field }: Question): RecordOperation =>
  operation === 'update' && field === 'ownerId' ? 'changeOwner' : operation;

export function explain(subject: Subject, question: Question): { allowed: boolean; steps: Step[] } {
  const { transition } = subject;
  const steps = [
    scopeStep(subject, question),
    publicationStep(subject),
    objectStep(subject, question, transition),
    fieldStep(subject, question, transition),
    sharingStep(subject, question),
    stateStep(subject, question, transition),
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

function scopeStep({ scopes }: Subject, { operation }: Question): Step {
  const scope = SCOPES[operation];
  if (scopes === null) return step('scope', 'notApplicable');
  if (scopes.includes(scope)) return step('scope', 'pass');
  return deny(
    'scope',
    `Sign in again and request the scope ${scope}. The client must be allowed to use it (scopes of its ExternalClient).`,
  );
}

function publicationStep({ object }: Subject): Step {
  if (object.published) return step('publication', 'pass');
  return deny('publication', `The object is not published. Set api.published: true in CustomObject ${object.apiName}.`);
}

function objectStep(subject: Subject, { operation }: Question, transition: TransitionOrAction | null): Step {
  const { view, object } = subject;
  const { access } = view;
  const { permission } = NEEDS[operation];
  if (!access.principal.active) return deny('objectPermission', 'The user is deactivated. Activate the user.');
  if (!access.system.has('apiEnabled'))
    return deny('objectPermission', 'Give the system permission apiEnabled in the profile or a permission set.');
  if (!ownEntry(access.objects, object.apiName)?.permission[permission]) {
    const remedy = `Give ${permission} on ${object.apiName} in the profile or a permission set of the user.`;
    return deny('objectPermission', isUserObject(object) ? userObjectRemedy(permission) : remedy);
  }
  if (transition && !isPermitted(transition, access))
    return deny(
      'objectPermission',
      `${notPermitted(transition)} Add it to the actions of the profile or a permission set.`,
    );
  // The records of effects are created with the permissions of the caller. A hidden object is not named.
  const closed = transition && closedObject(transition, access);
  if (closed !== null) {
    const name = ownEntry(subject.known, closed) ? closed : 'another object';
    return deny('objectPermission', `The transition creates a record of ${name}. Give create on that object.`);
  }
  const onObject = bundlesThatGrant(access, (bundle) => permissionGiven(object, [bundle])[permission]);
  const action = transition?.meta.permission;
  const onAction = action == null ? [] : bundlesThatGrant(access, (bundle) => bundle.actions.includes(action));
  const names = new Set(onObject.map(({ apiName }) => apiName));
  return step('objectPermission', 'pass', [...onObject, ...onAction.filter(({ apiName }) => !names.has(apiName))]);
}

const bundlesThatGrant = ({ bundles }: Access, grants: (bundle: PermissionBundle) => boolean): GrantedBy[] =>
  bundles.flatMap(({ kind, bundle }) => (grants(bundle) ? [{ kind, apiName: bundle.apiName }] : []));

const unknownField = (name: string): string =>
  `No readable field ${name} exists. Check the name, or ask an administrator for read permission.`;

function fieldStep(
  subject: Subject,
  { operation, field: name }: Question,
  transition: TransitionOrAction | null,
): Step {
  const { view, object, shown } = subject;
  const known = ownEntry(view.access.objects, object.apiName);
  const model = transition?.kind === 'transition' ? visibleModel(shown) : null;
  if (model && known && !visibleModel(known))
    return deny('fieldPermission', `Give read on the state field ${object.apiName}.${model.field}.`);
  const closed = transition && closedField(transition, view.access);
  if (closed !== null) {
    const [created = '', name = ''] = closed.split('.');
    const fields = ownEntry(ownEntry(subject.known, created)?.fields ?? {}, name)?.read
      ? closed
      : 'each of these fields';
    return deny('fieldPermission', `The transition creates a record and sets its fields. Give edit on ${fields}.`);
  }
  if (name === null) return step('fieldPermission', 'notApplicable');
  const field = ownEntry(shown.fields, name)?.read ? fieldOf(object, name) : undefined;
  if (!field) return deny('fieldPermission', unknownField(name));
  if (!known) return step('fieldPermission', 'notApplicable');
  const given = grantsOfField(view.access, object, field, operation);
  if (!ownEntry(known.fields, name)?.read) return deny('fieldPermission', `Give read on ${object.apiName}.${name}.`);
  if (operation === 'read') return step('fieldPermission', 'pass', given);
  if (!isWritable(object, field))
    return deny('fieldPermission', `${name} cannot be written: the platform maintains it.`);
  // Without permission on the object there is none on its fields; the object layer reports it.
  if (given.length > 0) return step('fieldPermission', 'pass', given);
  if (followsObject(object, field)) return step('fieldPermission', 'notApplicable');
  return deny('fieldPermission', `Give edit on ${object.apiName}.${name} in the profile or a permission set.`);
}

/** Such a field has no permission of its own, but that of its object. */
const followsObject = (object: ObjectMeta, { system, apiName }: FieldMeta): boolean =>
  system || apiName === object.nameField || isUserObject(object);

/** The bundles that grant reading or writing a field. */
function grantsOfField(
  access: Access,
  object: ObjectMeta,
  field: FieldMeta,
  operation: Question['operation'],
): readonly GrantedBy[] {
  const permission = NEEDS[operation].permission;
  const key = `${object.apiName}.${field.apiName}`;
  return bundlesThatGrant(access, (bundle) => {
    if (followsObject(object, field) && permissionGiven(object, [bundle])[permission]) return true;
    if (bundle.system.includes('modifyAllData')) return true;
    if (operation === 'read' && bundle.system.includes('viewAllData')) return true;
    const given = ownEntry(bundle.fields, key);
    return given !== undefined && (given.edit || (operation === 'read' && given.read));
  });
}

function sharingStep(subject: Subject, question: Question): Step {
  const { view, object, record } = subject;
  // A user who cannot read the object is refused by another layer; sharing means nothing then.
  if (!ownEntry(view.access.objects, object.apiName)) return step('sharing', 'notApplicable');
  const operation = decidedOperation(question);
  if (operation === 'create' && parentFields(object).length === 0) return step('sharing', 'notApplicable');
  const decision = decideSharing(view.access, object.apiName, operation, record);
  if (!decision.allowed)
    return deny(
      'sharing',
      decision.parent ? parentRemedy(subject, decision.parent) : sharingRemedy(subject, operation, decision.code),
    );
  if (subject.misplaces)
    return deny(
      'sharing',
      'The transition puts a record under another record. Give the user edit access to that record.',
    );
  const { grantedBy } = decision;
  // Grants on a parent are reported without the shares of the parent.
  if (operation === 'create') return step('sharing', 'pass', distinct(grantedBy));
  return step('sharing', 'pass', shownGrants(subject, grantedBy, operation));
}

/** Creating a record under parents that control its sharing needs edit access to all of them. */
function parentRemedy({ shown, known }: Subject, field: FieldMeta): string {
  const [apiName = ''] = field.referenceTo;
  const isVisible = ownEntry(known, apiName) !== undefined && ownEntry(shown.fields, field.apiName)?.read === true;
  const parent = isVisible ? `the ${apiName} record that ${field.apiName} refers to` : 'every parent of the record';
  return `Give the user edit access to ${parent}.`;
}

/** Manual shares are named by the user, role or group that they are for. */
function shownGrants({ view, record }: Subject, grants: readonly Grant[], operation: RecordOperation): GrantedBy[] {
  const { principal, memberships } = view.access;
  const { level } = NEEDS[operation];
  return distinct(
    grants.flatMap(({ kind, apiName }): GrantedBy[] => {
      if (kind !== 'manualShare') return [{ kind, apiName }];
      return record.shares
        .filter(({ access }) => level === 'read' || access === 'edit')
        .flatMap(({ principalType, principalId }) => {
          if (principalType === 'user')
            return principalId === principal.userId ? [{ kind, apiName: principal.username }] : [];
          const mine =
            principalType === 'role' ? memberships.roles.includes(principalId) : memberships.groups.has(principalId);
          return mine ? [{ kind, apiName: principalId }] : [];
        });
    }),
  );
}

const distinct = (grants: readonly (GrantedBy | Grant)[]): GrantedBy[] => [
  ...new Map(grants.map(({ kind, apiName }) => [`${kind} ${apiName}`, { kind, apiName }])).values(),
];

/** How a reference of the record gives the user access to it; null without a field that the caller sees. */
function referenceRemedy({ object, shown }: Subject, level: 'read' | 'edit'): string | null {
  const isVisible = ({ apiName }: FieldMeta): boolean => ownEntry(shown.fields, apiName)?.read === true;
  for (const rule of object.sharingRules) {
    const through = level === 'read' || rule.access === 'readWrite' ? sharesThrough(object, rule) : null;
    if (through && isVisible(through.field))
      return through.toUser
        ? `set ${through.field.apiName} to the user (sharing rule ${object.apiName}.${rule.apiName})`
        : `let ${through.field.apiName} refer to a record that the user owns (sharing rule ${object.apiName}.${rule.apiName})`;
  }
  const field = Object.values(object.fields).find(
    (item) => !item.system && isUserObject({ apiName: item.referenceTo[0] ?? '' }) && isVisible(item),
  );
  return field ? `add one of kind reference through ${field.apiName}, which shares it with the user named there` : null;
}

function sharingRemedy(subject: Subject, operation: RecordOperation, code: string): string {
  const { object } = subject;
  const { apiName } = object;
  const { level } = NEEDS[operation];
  const reference = level === 'full' ? null : referenceRemedy(subject, level);
  const byReference = reference === null ? '' : `${reference}, `;
  if (isUserObject(object)) return MANAGE_USERS_REMEDY;
  if (parentFields(object).length > 0)
    return (
      `Access to records of ${apiName} follows their parents. ` +
      `Give the user ${level === 'read' ? 'read' : 'edit'} access to every parent of the record.`
    );
  const refused = (what: string): string =>
    code === 'RECORD_ACCESS_DENIED'
      ? `The user can read the record, but may not ${what} it.`
      : `Sharing does not let the user ${what} the record.`;
  switch (level) {
    case 'read':
      return (
        `${refused('read')} Share it with the user, a role or a group, ` +
        `add a sharing rule of ${apiName}, ${byReference}or widen its sharingDefault.`
      );
    case 'edit':
      return (
        `${refused('change')} Share it with access edit, ` +
        `add a sharing rule of ${apiName} with access readWrite, ${byReference}or make the user its owner.`
      );
    case 'full':
      return (
        `${refused('delete, transfer or share')} Only its owner, users above the owner in the role hierarchy ` +
        `and users with modifyAll on ${apiName} may.`
      );
  }
}

function stateStep(
  subject: Subject,
  { operation, field, transitionKey }: Question,
  transition: TransitionOrAction | null,
): Step {
  const { view, object, shown, stored } = subject;
  const model = visibleModel(shown);
  if (operation === 'update' && model && field === model.field && !model.allowDirectEdit)
    return deny('recordState', `${field} can only be changed by transitions. Execute one of them.`);
  if (operation !== 'transition') return step('recordState', 'notApplicable');
  if (!transition)
    return deny(
      'recordState',
      `The object has no transition or action ${transitionKey}. List the transitions of the record.`,
    );
  const state = stateIn(shown, stored);
  if (!startsIn(transition, state))
    return deny(
      'recordState',
      `${wrongState(transition)} The record has ${state === null ? 'no state' : `the state ${state}`}.`,
    );
  if (!guardHolds(transition, storedFacts(view, object, stored, newRequestBudget())))
    return deny('recordState', guardMessage(transition));
  return step('recordState', 'pass');
}
