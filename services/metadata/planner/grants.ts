/**
 * Grants of a deployment. Users can neither give nor take by configuration what they do not hold: permissions, roles,
 * memberships, records, the users that clients act as, and what expressions tell of fields. Who manages access may.
 * A created component was held by no user before: the same deployment may give it to any. A restored one is not
 * new: bringing it back takes what deleting it took.
 * Source: docs/reference/access.md#handing-out-permissions.
 */
import { isDeepStrictEqual } from 'node:util';
import { KEPT_PERMISSIONS } from '../../../lib/access/administrators.ts';
import { rolesBelow } from '../../../lib/access/directory.ts';
import {
  type Giving,
  givenBy,
  heldBy,
  holdsMore,
  managesAccess,
  nameOfPermission,
  type Permission,
  permissionsOf,
} from '../../../lib/access/holdings.ts';
import type { Access } from '../../../lib/access/types.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import type { SharingDefault, SystemPermission } from '../../../lib/schema/snapshot.ts';
import { isUserObject } from '../../../lib/schema/user-object.ts';
import { AGENT_POLICY } from '../kinds/agent-policy.ts';
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT, type ObjectComponent } from '../kinds/bodies/custom-object.ts';
import { STATE_MODEL } from '../kinds/bodies/state-model.ts';
import { changedFields } from '../kinds/changes.ts';
import { compileField } from '../kinds/compile-field.ts';
import {
  type Component,
  type ComponentOf,
  componentKey,
  componentsOf,
  findComponent,
  isOf,
  type State,
} from '../kinds/component.ts';
import { CUSTOM_ACTION } from '../kinds/custom-action.ts';
import { DUPLICATE_RULE } from '../kinds/duplicate-rule.ts';
import { EXTERNAL_CLIENT } from '../kinds/external-client.ts';
import { GROUP } from '../kinds/group.ts';
import { IDENTITY_PROVIDER } from '../kinds/identity-provider.ts';
import type { Acting, CheckContext, Problem } from '../kinds/kind.ts';
import { givingOf, PERMISSION_SET, PROFILE } from '../kinds/permissions.ts';
import { findKind } from '../kinds/registry.ts';
import { ROLE } from '../kinds/role.ts';
import { SHARING_RULE } from '../kinds/sharing-rule.ts';
import { transitionKeys } from '../kinds/transitions-and-actions.ts';
import { VALIDATION_RULE } from '../kinds/validation-rule.ts';
import { alterations } from './alterations.ts';
import { type DataCheck, fillsRecords } from './data-checks.ts';
import { computedOtherwise, type Dependent, dependentsOf } from './dependents.ts';
import { restoredComponents } from './restored.ts';

/** Everything that the changes and deletions give away or take beyond what the actor holds becomes a problem. */
export function checkGrants(changed: readonly Component[], deleted: readonly Component[], context: CheckContext): void {
  if (context.acting === null) return;
  const grants = new Grants(context.acting, context);
  for (const component of changed) grants.check(component);
  for (const component of deleted) grants.checkDeletion(component);
  if (!managesAccess(context.acting.actor)) grants.checkValues(changed);
}

/**
 * The questions to the records whose answers the actor may hear. Each of the others is a problem instead: that a field
 * becomes narrower, or an answer that it cannot, would tell of values that are hidden.
 */
export function checksToAsk(checks: readonly DataCheck[], context: CheckContext, blocked: Problem[]): DataCheck[] {
  const { acting, before } = context;
  if (acting === null || managesAccess(acting.actor)) return [...checks];
  const held = heldBy(acting.actor);
  const known = new Map([...before, ...restoredComponents(context)]);
  return checks.filter((check) => {
    const missing = readBy(check, known).find((permission) => !held(permission));
    if (missing === undefined) return true;
    const { type, fullName, path } = check.component;
    blocked.push({
      code: 'COMPONENT_PERMISSION_DENIED',
      type,
      fullName,
      path,
      ...check.position,
      message: `Only users who hold ${nameOfPermission(missing)} learn whether the records allow it.`,
      remedy: ASK,
    });
    return false;
  });
}

/** Components that the answer to a query reveals, as far as they exist. */
function readBy({ component, object, question }: DataCheck, known: State): Permission[] {
  const asked = 'field' in question ? question.field : null;
  const names = [
    ...(isOf(component, CUSTOM_FIELD) ? [component.fullName] : []),
    ...(asked === null ? [] : [`${object}.${typeof asked === 'string' ? asked : asked.apiName}`]),
  ];
  const fields = names.filter((name) => known.has(componentKey('CustomField', name)));
  if (!known.has(componentKey('CustomObject', object))) return [];
  return [
    // All users may read the list of users.
    ...(isUserObject({ apiName: object }) ? [] : [{ kind: 'object', object, right: 'read' } as const]),
    ...fields.map((field): Permission => ({ kind: 'field', field, right: 'read' })),
  ];
}

const ASK = 'Ask a user who holds it or manageAccess.';

type Body = Component['body'];

/** Properties that are for people and decide nothing. */
const DESCRIPTIONS: ReadonlySet<string> = new Set([
  'name',
  'label',
  'labelPlural',
  'description',
  'helpText',
  'message',
  'guardMessage',
]);

/** The first property that differs, descriptions aside; null when none does. */
function change(a: Body, b: Body): string | null {
  const names = [...Object.keys(b), ...Object.keys(a)].filter((name) => !DESCRIPTIONS.has(name));
  return names.find((name) => !isDeepStrictEqual(a[name], b[name])) ?? null;
}

/** Share of an object's records that a user surely reaches. */
type Coverage = 'none' | 'read' | 'full';
const RANK: Readonly<Record<Coverage, number>> = { none: 0, read: 1, full: 2 };
const BY_DEFAULT: Readonly<Record<SharingDefault, Coverage>> = {
  private: 'none',
  controlledByParent: 'none',
  read: 'read',
  readWrite: 'full',
};

/** Permissions that administrators need for giving permissions back; other holders cannot take them away. */
const OF_ADMINISTRATORS: readonly SystemPermission[] = ['apiEnabled', ...KEPT_PERMISSIONS];

/** Properties of a field that can refuse the change of a record, when they change. */
const CONSTRAINTS = [
  'fieldType',
  'required',
  'unique',
  'externalId',
  'caseSensitive',
  'length',
  'precision',
  'scale',
  'minimum',
  'maximum',
  'pattern',
  'picklist',
  'onDelete',
] as const;

/** A changed component, and the place in it by which the values of a field become others. */
interface Cause {
  /** The field. */
  readonly fullName: string;
  readonly component: Component;
  readonly pointer: string;
}

class Grants {
  readonly #actor: Access;
  readonly #clientUsers: Acting['clientUsers'];
  readonly #context: CheckContext;
  readonly #held: (permission: Permission) => boolean;
  /** A restored component is not new: users held it. */
  readonly #restored: State;

  constructor({ actor, clientUsers }: Acting, context: CheckContext) {
    this.#actor = actor;
    this.#clientUsers = clientUsers;
    this.#context = context;
    this.#held = managesAccess(actor) ? () => true : heldBy(actor);
    this.#restored = restoredComponents(context);
  }

  check(component: Component): void {
    if (isOf(component, EXTERNAL_CLIENT)) this.#client(component);
    if (managesAccess(this.#actor)) return;
    if (this.#isRestored(component.type, component.fullName)) this.#asWhole(component, 'restore');
    if (isOf(component, PROFILE) || isOf(component, PERMISSION_SET)) this.#bundle(component);
    else if (isOf(component, ROLE)) this.#role(component);
    else if (isOf(component, GROUP)) this.#group(component);
    else if (isOf(component, CUSTOM_OBJECT)) this.#object(component);
    else if (isOf(component, CUSTOM_FIELD)) this.#field(component);
    else if (isOf(component, SHARING_RULE)) this.#sharingRule(component);
    else if (isOf(component, DUPLICATE_RULE)) this.#duplicateRule(component);
    else if (isOf(component, STATE_MODEL)) this.#stateModel(component);
    else if (isOf(component, CUSTOM_ACTION)) this.#action(component);
    else if (isOf(component, AGENT_POLICY)) this.#agentPolicy(component);
    else if (isOf(component, IDENTITY_PROVIDER)) this.#identityProvider(component);
    this.#users(component);
    this.#expressions(component);
  }

  /** A deletion is a change: it takes whatever the component gave, and lifts whatever it held people to. */
  checkDeletion(component: Component): void {
    if (isOf(component, EXTERNAL_CLIENT)) this.#clientOfUser(component, component.body.integrationUser);
    if (managesAccess(this.#actor)) return;
    if (isOf(component, PROFILE) || isOf(component, PERMISSION_SET)) this.#taken(component, component, undefined);
    this.#asWhole(component, 'delete');
  }

  /** Holdings needed for deleting a component, and for restoring it with all that was kept of it. */
  #asWhole(component: Component, verb: 'delete' | 'restore'): void {
    // Their grants are checked one by one.
    if (isOf(component, PROFILE) || isOf(component, PERMISSION_SET)) return;
    if (isOf(component, ROLE)) {
      if (!this.#isAbove(component.fullName))
        this.#denied(component, '', `Only who stands above the role ${component.fullName} can ${verb} it.`);
    } else if (isOf(component, GROUP)) {
      if (!this.#actor.memberships.groups.has(component.fullName))
        this.#denied(component, '', `Only a member of the group can ${verb} it.`);
    } else if (isOf(component, CUSTOM_OBJECT)) {
      if (!this.#deletesAll(component.fullName))
        this.#denied(component, '', `Only who may delete all records of the object can ${verb} it.`);
    } else if (isOf(component, CUSTOM_FIELD)) this.#wholeField(component, verb);
    else if (isOf(component, AGENT_POLICY)) this.#denied(component, '', DECIDING_ABOUT_AGENTS);
    else if (isOf(component, IDENTITY_PROVIDER)) this.#denied(component, '', DECIDING_WHO_SIGNS_IN);
    else {
      // Rules and actions: who could not change all of it.
      const lacking = this.#lacking(component, '');
      if (lacking !== null)
        this.#denied(component, '', `To ${verb} it takes being able to change all of it, and ${lacking}.`);
    }
  }

  /** Its values are gone for all users, or back. */
  #wholeField(component: FieldComponent, verb: 'delete' | 'restore'): void {
    const { fullName, body } = component;
    const { object, formula, rollup } = body;
    if (isUserObject({ apiName: object }) && (body.required || body.unique)) {
      this.#denied(component, '', REFUSING_USERS);
      return;
    }
    const computed = formula !== undefined || rollup !== undefined;
    const right = computed ? 'read' : 'edit';
    if (!this.#held({ kind: 'field', field: fullName, right }))
      this.#denied(component, '', `Only who holds ${right} on ${fullName} can ${verb} it.`);
    else if (!computed && !(this.#held({ kind: 'object', object, right: 'update' }) && this.#covers(object, 'full')))
      this.#denied(component, '', `Only who may change all records of ${object} can ${verb} values of all of them.`);
  }

  /** True when the actor may delete all records of an object. */
  #deletesAll(object: string): boolean {
    return this.#held({ kind: 'object', object, right: 'delete' }) && this.#covers(object, 'full');
  }

  /** Effects of changed values: of fields that are computed differently, or given to others. */
  checkValues(changed: readonly Component[]): void {
    this.#computed(changed);
    this.#defaults(changed);
    this.#altered(changed);
  }

  #denied(component: Component, pointer: string, message: string): void {
    this.#context.problem('COMPONENT_PERMISSION_DENIED', component, pointer, message, {
      remedy: ASK,
    });
  }

  #isDeleted({ type, fullName }: Component): boolean {
    return !this.#context.after.has(componentKey(type, fullName));
  }

  #isNew(type: string, fullName: string): boolean {
    return !this.#context.before.has(componentKey(type, fullName)) && !this.#isRestored(type, fullName);
  }

  #isRestored(type: string, fullName: string): boolean {
    return this.#restored.has(componentKey(type, fullName));
  }

  /** Only configuration created by this deployment refers to it: no user has held it. */
  #isNewPermission(permission: Permission): boolean {
    switch (permission.kind) {
      case 'object':
        return this.#isNew('CustomObject', permission.object);
      case 'field':
        return this.#isNew('CustomField', permission.field);
      case 'action':
        return ![this.#context.before, this.#restored].some((state) => transitionKeys(state).has(permission.action));
      default:
        return false;
    }
  }

  #bundle(component: ComponentOf<typeof PROFILE> | ComponentOf<typeof PERMISSION_SET>): void {
    const type = isOf(component, PROFILE) ? PROFILE : PERMISSION_SET;
    const old = findComponent(this.#context.before, type, component.fullName);
    const [before, after] = [givingOf(old), givingOf(component)];
    const had = givenBy([before]);
    for (const permission of permissionsOf(after))
      if (!had(permission) && !this.#held(permission) && !this.#isNewPermission(permission))
        this.#denied(
          component,
          pointerOf(permission, after),
          `Only who holds ${nameOfPermission(permission)} can give it to others.`,
        );
    this.#taken(component, old, component);
  }

  /** The caller may not take from others what they do not hold. */
  #taken(component: Component, old: Parameters<typeof givingOf>[0], now: Parameters<typeof givingOf>[0]): void {
    const before = givingOf(old);
    const has = givenBy([givingOf(now)]);
    const isAdministration = before.system.includes('manageAccess');
    for (const permission of permissionsOf(before)) {
      if (has(permission)) continue;
      const name = nameOfPermission(permission);
      if (!this.#held(permission)) this.#denied(component, '', `Only who holds ${name} can take it from others.`);
      else if (isAdministration || (permission.kind === 'system' && OF_ADMINISTRATORS.includes(permission.name)))
        this.#denied(component, '', `Only who holds manageAccess can take ${name} from others.`);
    }
  }

  /** Users above a role reach records owned by its holders. */
  #role(component: ComponentOf<typeof ROLE>): void {
    const { fullName, body } = component;
    const old = findComponent(this.#context.before, ROLE, fullName);
    if (!old || old.body.parent === body.parent || this.#isAbove(fullName)) return;
    const pointer = body.parent === undefined ? '' : '/parent';
    this.#denied(component, pointer, `Only who stands above the role ${fullName} can put it under another role.`);
  }

  #isAbove(role: string): boolean {
    const { principal, snapshot } = this.#actor;
    return principal.roleApiName !== null && rolesBelow(snapshot, principal.roleApiName).has(role);
  }

  #group(component: ComponentOf<typeof GROUP>): void {
    const { before, after } = this.#context;
    const old = findComponent(before, GROUP, component.fullName);
    const { members } = component.body;
    if (old && isDeepStrictEqual(old.body.members, members)) return;
    if (old && !this.#actor.memberships.groups.has(component.fullName)) {
      this.#denied(component, members ? '/members' : '', 'Only a member of the group can change its members.');
      return;
    }
    const containing = this.#groupsWith(component.fullName);
    for (const rule of componentsOf(after, SHARING_RULE)) {
      const { object, from, access, to } = rule.body;
      if (from?.group === undefined || !containing.has(from.group) || this.#isNew('CustomObject', object)) continue;
      if (!this.#covers(object, access === 'read' ? 'read' : 'full'))
        this.#denied(
          component,
          members ? '/members' : '',
          `${rule.fullName} opens the records of its members to ${to?.role ?? to?.group}, and you do not reach all of them.`,
        );
    }
  }

  /** A group and those that it is in, at any depth. */
  #groupsWith(name: string): ReadonlySet<string> {
    const groups = componentsOf(this.#context.after, GROUP);
    const found = new Set([name]);
    for (const inner of found)
      for (const { fullName, body } of groups) if (body.members?.groups?.includes(inner)) found.add(fullName);
    return found;
  }

  /** True when the actor reaches all records of an object by the present configuration. */
  #covers(object: string, needed: Coverage): boolean {
    if (!this.#knows(object)) return false;
    const shared = findComponent(this.#context.before, CUSTOM_OBJECT, object)?.body.sharingDefault ?? 'private';
    const given = (right: 'viewAll' | 'modifyAll'): boolean => this.#held({ kind: 'object', object, right });
    const held: Coverage = given('modifyAll') ? 'full' : given('viewAll') ? 'read' : 'none';
    return Math.max(RANK[held], RANK[BY_DEFAULT[shared]]) >= RANK[needed];
  }

  /** True when the object is visible to the actor; the list of users is visible to all. */
  #knows(object: string): boolean {
    return isUserObject({ apiName: object }) || this.#held({ kind: 'object', object, right: 'read' });
  }

  #object(component: ObjectComponent): void {
    const old = findComponent(this.#context.before, CUSTOM_OBJECT, component.fullName);
    if (!old) return;
    this.#sharingDefault(component, old);
    const { fullName: object, body } = component;
    if (old.body.api.published && !body.api.published && (isUserObject(body) || !this.#deletesAll(object)))
      this.#denied(
        component,
        '/api/published',
        'Only who may delete all records of the object can take it from others.',
      );
    for (const kept of ['history', 'events'] as const)
      if (old.body.features[kept] && !body.features[kept] && !this.#deletesAll(object))
        this.#denied(
          component,
          `/features/${kept}`,
          `Only who may delete all records of the object can stop keeping its ${kept}.`,
        );
    if (body.features.duplicates !== true || old.body.features.duplicates === true) return;
    for (const rule of componentsOf(this.#context.after, DUPLICATE_RULE)) {
      if (rule.body.object !== object || !rule.body.active || this.#isNew(rule.type, rule.fullName)) continue;
      const lacking = this.#lacking(rule, '');
      if (lacking !== null)
        this.#denied(component, '/features/duplicates', `${rule.type} ${rule.fullName} would wake up, and ${lacking}.`);
    }
  }

  #sharingDefault(component: ObjectComponent, old: ObjectComponent): void {
    const { sharingDefault } = component.body;
    if (old.body.sharingDefault === sharingDefault) return;
    const [from, to] = [BY_DEFAULT[old.body.sharingDefault], BY_DEFAULT[sharingDefault]];
    const parents = [old.body.sharingDefault, sharingDefault].includes('controlledByParent');
    if (!parents && RANK[to] <= RANK[from]) return;
    // Parents open records to others than owners and roles do, and the other way round.
    if (!this.#covers(component.fullName, parents ? 'full' : to))
      this.#denied(component, '/sharingDefault', 'Only who reaches all records of the object can open them to others.');
  }

  #sharingRule(component: ComponentOf<typeof SHARING_RULE>): void {
    const { body, fullName } = component;
    const old = findComponent(this.#context.before, SHARING_RULE, fullName)?.body;
    if (this.#isNew('CustomObject', body.object) || (old && change(old, body) === null)) return;
    if (!this.#reaches(body))
      this.#denied(component, '/access', 'The rule opens records that you do not reach yourself.');
    else if (old && !this.#reaches(old))
      this.#denied(component, '', 'The rule opened records that you do not reach yourself.');
  }

  /** True when the actor reaches all records that a rule opens. */
  #reaches({ object, kind, from, access }: ComponentOf<typeof SHARING_RULE>['body']): boolean {
    const right = access === 'read' ? 'read' : 'update';
    if (!this.#held({ kind: 'object', object, right })) return false;
    if (kind === 'owner' && from?.role !== undefined && this.#isAbove(from.role)) return true;
    return this.#covers(object, access === 'read' ? 'read' : 'full');
  }

  #duplicateRule(component: ComponentOf<typeof DUPLICATE_RULE>): void {
    const { object, scope } = component.body;
    const old = findComponent(this.#context.before, DUPLICATE_RULE, component.fullName);
    if (this.#isNew('CustomObject', object) || (old && change(old.body, component.body) === null)) return;
    if (this.#tellsMore(component.body))
      this.#denied(
        component,
        scope === 'all' ? '/scope' : '/revealHiddenCount',
        'The rule tells of records that you do not see all of.',
      );
  }

  /** True when a rule reads, or counts, records that the actor does not see. */
  #tellsMore({ object, scope, revealHiddenCount }: ComponentOf<typeof DUPLICATE_RULE>['body']): boolean {
    return (scope === 'all' || revealHiddenCount) && !this.#covers(object, 'read');
  }

  /** Only callers with `manageAccess` can make users unchangeable: administrators are users. */
  #users(component: Component): void {
    const { before } = this.#context;
    const old = before.get(componentKey(component.type, component.fullName));
    if (!isUserObject({ apiName: String(component.body['object']) })) return;
    if (isOf(component, CUSTOM_FIELD)) {
      const { body } = component;
      const property = old
        ? CONSTRAINTS.find((name) => !isDeepStrictEqual(old.body[name], body[name]))
        : (['required', 'unique'] as const).find((name) => body[name] === true);
      if (property !== undefined)
        this.#denied(component, Object.hasOwn(body, property) ? `/${property}` : '', REFUSING_USERS);
    } else if (refuses(component) && !(old && change(old.body, component.body) === null))
      this.#denied(component, '/object', REFUSING_USERS);
  }

  /** Formulas and rollups that change, and what is over them: as if all of that changed. */
  #computed(changed: readonly Component[]): void {
    const causes = changed.flatMap((component): Cause[] => {
      const old = findComponent(this.#context.before, CUSTOM_FIELD, component.fullName);
      if (!old || !isOf(component, CUSTOM_FIELD)) return [];
      const property = computedOtherwise(old.body, component.body);
      if (property === null) return [];
      const pointer = Object.hasOwn(component.body, property) ? `/${property}` : '';
      return [{ fullName: component.fullName, component, pointer }];
    });
    for (const { component, pointer, cause } of this.#dependentsOf(causes)) {
      const lacking = this.#lacking(component, pointer);
      if (lacking !== null)
        this.#denied(
          cause.component,
          cause.pointer,
          `${component.type} ${component.fullName} depends on it, and ${lacking}.`,
        );
    }
  }

  #dependentsOf(causes: readonly Cause[]): Dependent<Cause>[] {
    const found = causes.length > 0 ? dependentsOf(causes, this.#context.after) : [];
    // Components of this deployment are checked themselves.
    return found.filter(({ component }) => !this.#isNew(component.type, component.fullName));
  }

  /** Holdings that the actor lacks for changing the component's reads at `pointer` (anywhere: `''`); null: none. */
  #lacking(component: Component, pointer: string): string | null {
    const of = isUserObject({ apiName: String(component.body['object']) });
    if (of && refuses(component)) return 'it takes manageAccess';
    if (isOf(component, SHARING_RULE) && !this.#reaches(component.body))
      return 'it opens records that you do not reach';
    if (isOf(component, DUPLICATE_RULE) && this.#tellsMore(component.body))
      return 'it tells of records that you do not see all of';
    if (isOf(component, CUSTOM_FIELD)) {
      const { rollup } = component.body;
      if (rollup && !this.#coversChildren(rollup))
        return `it tells of records of ${rollup.childObject} that you do not reach`;
    }
    const part = partAt(component, pointer);
    const action = permissionsAt(component, part).find((name) => !this.#held({ kind: 'action', action: name }));
    if (action !== undefined) return `it takes ${action}`;
    for (const { fullName, access, pointer: at } of findKind(component.type)?.references?.(component.body) ?? []) {
      if (access === undefined || !`${at}/`.startsWith(`${part}/`) || this.#isNew('CustomField', fullName)) continue;
      if (!this.#held({ kind: 'field', field: fullName, right: access })) return `it takes ${access} on ${fullName}`;
    }
    return null;
  }

  /**
   * A default value is given to new records of all users, and to all that have none when the field becomes required.
   */
  #defaults(changed: readonly Component[]): void {
    const { before, after } = this.#context;
    const causes: Cause[] = [];
    for (const component of changedFields(changed, after)) {
      const { fullName, body } = component;
      const old = findComponent(before, CUSTOM_FIELD, fullName);
      if (!old) continue;
      const [was, now] = [compileField(old, before), compileField(component, after)];
      const fills = now.required && !was.required && fillsRecords(now);
      if (!fills && isDeepStrictEqual(was.defaultValue, now.defaultValue)) continue;
      const pointer = ['defaultValue', 'picklist'].find((name) => Object.hasOwn(body, name));
      const cause = { fullName, component, pointer: pointer === undefined ? '' : `/${pointer}` };
      causes.push(cause);
      const { object } = body;
      if (!this.#held({ kind: 'field', field: fullName, right: 'edit' }))
        this.#denied(component, cause.pointer, `Only who holds edit on ${fullName} can change its default value.`);
      if (fills && !(this.#held({ kind: 'object', object, right: 'update' }) && this.#covers(object, 'full')))
        this.#denied(component, '/required', `It would be given to records of ${object} that you may not change.`);
    }
    for (const component of changed) {
      if (!isOf(component, STATE_MODEL)) continue;
      const { object, field, initial, active } = component.body;
      const old = findComponent(before, STATE_MODEL, component.fullName)?.body;
      if (old && old.field === field && old.initial === initial && old.active === active) continue;
      causes.push({ fullName: `${object}.${field}`, component, pointer: '/initial' });
    }
    for (const { component, cause } of this.#dependentsOf(causes))
      if (isOf(component, SHARING_RULE) && !this.#reaches(component.body))
        this.#denied(
          cause.component,
          cause.pointer,
          `${component.type} ${component.fullName} depends on it, and it opens records that you do not reach.`,
        );
  }

  /** Values of all records become others. */
  #altered(changed: readonly Component[]): void {
    for (const { component, listed } of alterations(changed, this.#context)) {
      if (!listed) continue;
      const { object } = component.body;
      const edits = this.#held({ kind: 'field', field: component.fullName, right: 'edit' });
      if (!edits || !(this.#held({ kind: 'object', object, right: 'update' }) && this.#covers(object, 'full')))
        this.#denied(component, '', `Only who may change all values of ${component.fullName} can let them be lost.`);
    }
  }

  #field(component: FieldComponent): void {
    const { body, fullName } = component;
    const old = findComponent(this.#context.before, CUSTOM_FIELD, fullName);
    const { object, rollup, onDelete, picklist } = body;
    const controlling = picklist?.controllingField;
    if (controlling !== undefined && controlling !== old?.body.picklist?.controllingField) {
      const field = `${object}.${controlling}`;
      if (!this.#isNew('CustomField', field) && !this.#held({ kind: 'field', field, right: 'read' }))
        this.#denied(component, '/picklist/controllingField', `Only who holds read on ${field} can name it here.`);
    }
    if (rollup && !isDeepStrictEqual(old?.body.rollup, rollup) && !this.#coversChildren(rollup))
      this.#denied(component, '/rollup', `The rollup tells of records of ${rollup.childObject} that you do not reach.`);
    if (!old || old.body.onDelete === onDelete) return;
    const may =
      onDelete === 'cascade'
        ? this.#held({ kind: 'object', object, right: 'delete' }) && this.#covers(object, 'full')
        : onDelete !== 'setNull' || this.#held({ kind: 'field', field: fullName, right: 'edit' });
    if (!may)
      this.#denied(
        component,
        '/onDelete',
        `Deleting another record would change records of ${object} that you may not.`,
      );
  }

  /** True when every reader of a parent sees all records of its rollup. */
  #coversChildren({ childObject, referenceField }: NonNullable<FieldComponent['body']['rollup']>): boolean {
    if (this.#isNew('CustomObject', childObject) || this.#covers(childObject, 'read')) return true;
    if (!this.#knows(childObject)) return false;
    const { before, fieldsOf } = this.#context;
    const shared = findComponent(before, CUSTOM_OBJECT, childObject)?.body.sharingDefault;
    const parents = [...fieldsOf(childObject).values()].filter(({ body }) => isMasterDetail(body));
    return shared === 'controlledByParent' && parents.length === 1 && parents[0]?.body.apiName === referenceField;
  }

  /** Transitions that need a permission stay as they are for those who do not hold it. */
  #stateModel(component: ComponentOf<typeof STATE_MODEL>): void {
    const old = findComponent(this.#context.before, STATE_MODEL, component.fullName);
    if (!old) return;
    const changed = change(old.body, component.body);
    const needed = (old.body.transitions ?? []).flatMap(({ permission }) => permission ?? []);
    if (changed !== null) this.#keeps(component, changed, needed);
  }

  #action(component: ComponentOf<typeof CUSTOM_ACTION>): void {
    const old = findComponent(this.#context.before, CUSTOM_ACTION, component.fullName);
    if (!old) return;
    const changed = change(old.body, component.body);
    if (changed !== null) this.#keeps(component, changed, [old.body.permission ?? old.fullName]);
  }

  /** Policies bind the agents of administrators, too: without managing access one only denies more than before. */
  #agentPolicy(component: ComponentOf<typeof AGENT_POLICY>): void {
    const old = findComponent(this.#context.before, AGENT_POLICY, component.fullName);
    const { rules = [], allowSelfApproval } = component.body;
    if (old ? change(old.body, component.body) === null : rules.every(({ decision }) => decision === 'deny')) return;
    const pointer = allowSelfApproval ? '/allowSelfApproval' : rules.length > 0 ? '/rules' : '';
    this.#denied(component, pointer, DECIDING_ABOUT_AGENTS);
  }

  /** The provider's operator can sign in as any user of its domains, administrators included. */
  #identityProvider(component: ComponentOf<typeof IDENTITY_PROVIDER>): void {
    const old = findComponent(this.#context.before, IDENTITY_PROVIDER, component.fullName);
    const changed = old ? change(old.body, component.body) : 'issuer';
    if (changed === null) return;
    this.#denied(component, Object.hasOwn(component.body, changed) ? `/${changed}` : '', DECIDING_WHO_SIGNS_IN);
  }

  #keeps(component: Component, property: string, needed: readonly string[]): void {
    const missing = needed.find((action) => !this.#held({ kind: 'action', action }));
    if (missing === undefined) return;
    const pointer = Object.hasOwn(component.body, property) ? `/${property}` : '';
    this.#denied(component, pointer, `Only who holds ${missing} can change what it leads to.`);
  }

  /** An expression reveals its inputs to readers of its result; an effect sets values for any caller. */
  #expressions(component: Component): void {
    const old = this.#context.before.get(componentKey(component.type, component.fullName));
    for (const { fullName, pointer, access } of findKind(component.type)?.references?.(component.body) ?? []) {
      if (access === undefined || this.#isNew('CustomField', fullName)) continue;
      if (old && isDeepStrictEqual(partOf(old, pointer, component), partOf(component, pointer, component))) continue;
      if (!this.#held({ kind: 'field', field: fullName, right: access }))
        this.#denied(component, pointer, `Only who holds ${access} on ${fullName} can name it here.`);
    }
  }

  /** A client acts as its user without asking, for every holder of its secret or one of its keys. */
  #client(component: ComponentOf<typeof EXTERNAL_CLIENT>): void {
    const { body, fullName } = component;
    const old = findComponent(this.#context.before, EXTERNAL_CLIENT, fullName)?.body;
    if (old && change(old, body) === null) {
      this.#managesClients(component);
      return;
    }
    if (body.integrationUser !== undefined)
      this.#context.warning(
        'ACTS_AS_USER',
        component,
        '/integrationUser',
        `A holder of the secret or a key of the client can do everything that ${body.integrationUser} may do.`,
      );
    this.#clientOfUser(component, body.integrationUser, old?.integrationUser);
  }

  #managesClients(component: Component): void {
    if (!this.#actor.system.has('manageClients')) this.#denied(component, '', 'Changing clients needs manageClients.');
  }

  /** The caller must hold every permission of the client's present and former users. */
  #clientOfUser(component: Component, ...usernames: (string | undefined)[]): void {
    this.#managesClients(component);
    if (managesAccess(this.#actor)) return;
    const named = String(component.body['integrationUser'] ?? '').toLowerCase();
    for (const username of new Set(usernames.map((name) => name?.toLowerCase()))) {
      if (username === undefined) continue;
      const pointer = username === named && !this.#isDeleted(component) ? '/integrationUser' : '';
      const user = this.#clientUsers.get(username);
      if (!this.#held({ kind: 'system', name: 'manageUsers' }))
        this.#denied(component, pointer, 'A client that acts as a user is changed by those who hold manageUsers.');
      // A user who took an unused name would be the one that the client acts as.
      else if (!user || holdsMore(user, this.#actor))
        this.#denied(component, pointer, `Only who holds everything that ${username} holds can change the client.`);
    }
  }
}

/** The part of a component that decides what an expression in it, at `pointer` of `now`, tells. */
function partOf({ body }: Component, pointer: string, now: Component): unknown {
  const [, first = '', index] = pointer.split('/');
  if (isOf(now, CUSTOM_FIELD)) return body[first];
  if (!isOf(now, STATE_MODEL))
    return Object.fromEntries(Object.entries(body).filter(([name]) => !DESCRIPTIONS.has(name)));
  const { field, initial, active, allowDirectEdit } = body;
  if (first !== 'transitions') return [field, initial, active !== false, allowDirectEdit];
  const key = now.body.transitions?.[Number(index)]?.key;
  const transitions = body['transitions'] as typeof now.body.transitions;
  return [active !== false, transitions?.find((transition) => transition.key === key)];
}

/** The part of a component that counts as changed with what it reads at `pointer`: where that part stands. */
function partAt(component: Component, pointer: string): string {
  const steps = pointer.split('/');
  if (isOf(component, CUSTOM_FIELD)) return steps.slice(0, 2).join('/');
  return isOf(component, STATE_MODEL) && steps[1] === 'transitions' ? steps.slice(0, 3).join('/') : '';
}

/** The permissions on transitions and actions that protect a part of a component. */
function permissionsAt(component: Component, part: string): readonly string[] {
  if (isOf(component, CUSTOM_ACTION)) return [component.body.permission ?? component.fullName];
  if (!isOf(component, STATE_MODEL)) return [];
  const { transitions = [] } = component.body;
  const index = part.split('/')[2];
  return transitions.flatMap(({ permission }, i) =>
    index === undefined || i === Number(index) ? (permission ?? []) : [],
  );
}

const DECIDING_ABOUT_AGENTS = 'Only who holds manageAccess can decide what agents of others may do.';
const DECIDING_WHO_SIGNS_IN = 'Only who holds manageAccess can decide where users sign in, and what they get then.';
const REFUSING_USERS = 'Only who holds manageAccess can decide which changes of users are refused.';

/** True when it can refuse to store a record. */
const refuses = (component: Component): boolean =>
  [VALIDATION_RULE, DUPLICATE_RULE, STATE_MODEL].some(({ type }) => type === component.type);

/** Pointer at which a bundle names a permission. */
function pointerOf(permission: Permission, { system, actions }: Giving): string {
  switch (permission.kind) {
    case 'system':
      return `/system/${system.indexOf(permission.name)}`;
    case 'object':
      return `/objects/${pointerPart(permission.object)}/${permission.right}`;
    case 'field':
      return `/fields/${pointerPart(permission.field)}/${permission.right}`;
    default:
      return `/actions/${actions.indexOf(permission.action)}`;
  }
}
