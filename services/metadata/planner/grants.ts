/**
 * What a deployment hands out. Nobody gives or takes by configuration what they do not hold: permissions, roles,
 * memberships, records, the users that clients act as, and what expressions tell of fields. Who manages access may.
 * What a deployment creates, nobody held before: the same deployment may give it to anybody.
 * Source: docs/reference/access.md#handing-out-permissions.
 */
import { isDeepStrictEqual } from 'node:util';
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
import type { SharingDefault } from '../../../lib/schema/snapshot.ts';
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT, type ObjectComponent } from '../kinds/bodies/custom-object.ts';
import { STATE_MODEL } from '../kinds/bodies/state-model.ts';
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
import type { Acting, CheckContext, Problem } from '../kinds/kind.ts';
import { givingOf, PERMISSION_SET, PROFILE } from '../kinds/permissions.ts';
import { findKind } from '../kinds/registry.ts';
import { ROLE } from '../kinds/role.ts';
import { SHARING_RULE } from '../kinds/sharing-rule.ts';
import { transitionKeys } from '../kinds/transitions-and-actions.ts';
import type { DataCheck } from './data-checks.ts';

/** Everything that the changed components give away beyond what the actor holds becomes a problem. */
export function checkGrants(changed: readonly Component[], context: CheckContext): void {
  if (context.acting === null) return;
  const grants = new Grants(context.acting, context);
  for (const component of changed) grants.check(component);
}

/**
 * The questions to the records whose answers the actor may hear. Each of the others is a problem instead: that a field
 * becomes narrower, or an answer that it cannot, would tell of values that are hidden.
 */
export function checksToAsk(checks: readonly DataCheck[], context: CheckContext, blocked: Problem[]): DataCheck[] {
  const { acting, before } = context;
  if (acting === null || managesAccess(acting.actor)) return [...checks];
  const held = heldBy(acting.actor);
  return checks.filter((check) => {
    const missing = readBy(check, before).find((permission) => !held(permission));
    if (missing === undefined) return true;
    const { type, fullName, path } = check.component;
    blocked.push({
      code: 'COMPONENT_PERMISSION_DENIED',
      type,
      fullName,
      path,
      ...check.position,
      message: `Only who holds ${nameOfPermission(missing)} is told whether the records allow it.`,
      remedy: ASK,
    });
    return false;
  });
}

/** What the answer to a question tells of, as far as it is there. */
function readBy({ component, question }: DataCheck, before: State): Permission[] {
  const object = String(component.body['object']);
  const asked = 'field' in question ? question.field : null;
  const names = [
    ...(isOf(component, CUSTOM_FIELD) ? [component.fullName] : []),
    ...(asked === null ? [] : [`${object}.${typeof asked === 'string' ? asked : asked.apiName}`]),
  ];
  const fields = names.filter((name) => before.has(componentKey('CustomField', name)));
  return [
    { kind: 'object', object, right: 'read' },
    ...fields.map((field): Permission => ({ kind: 'field', field, right: 'read' })),
  ];
}

const ASK = 'Ask somebody who holds it, or who holds manageAccess.';

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

/** How much of an object's records somebody is sure to reach. */
type Coverage = 'none' | 'read' | 'full';
const RANK: Readonly<Record<Coverage, number>> = { none: 0, read: 1, full: 2 };
const BY_DEFAULT: Readonly<Record<SharingDefault, Coverage>> = {
  private: 'none',
  controlledByParent: 'none',
  read: 'read',
  readWrite: 'full',
};

class Grants {
  readonly #actor: Access;
  readonly #clientUsers: Acting['clientUsers'];
  readonly #context: CheckContext;
  readonly #held: (permission: Permission) => boolean;

  constructor({ actor, clientUsers }: Acting, context: CheckContext) {
    this.#actor = actor;
    this.#clientUsers = clientUsers;
    this.#context = context;
    this.#held = managesAccess(actor) ? () => true : heldBy(actor);
  }

  check(component: Component): void {
    if (isOf(component, EXTERNAL_CLIENT)) this.#client(component);
    if (managesAccess(this.#actor)) return;
    if (isOf(component, PROFILE) || isOf(component, PERMISSION_SET)) this.#bundle(component);
    else if (isOf(component, ROLE)) this.#role(component);
    else if (isOf(component, GROUP)) this.#group(component);
    else if (isOf(component, CUSTOM_OBJECT)) this.#object(component);
    else if (isOf(component, CUSTOM_FIELD)) this.#field(component);
    else if (isOf(component, SHARING_RULE)) this.#sharingRule(component);
    else if (isOf(component, DUPLICATE_RULE)) this.#duplicateRule(component);
    else if (isOf(component, STATE_MODEL)) this.#stateModel(component);
    else if (isOf(component, CUSTOM_ACTION)) this.#action(component);
    this.#expressions(component);
  }

  #denied(component: Component, pointer: string, message: string): void {
    this.#context.problem('COMPONENT_PERMISSION_DENIED', component, pointer, message, {
      remedy: ASK,
    });
  }

  #isNew(type: string, fullName: string): boolean {
    return !this.#context.before.has(componentKey(type, fullName));
  }

  /** Only configuration that this deployment creates knows it: nobody has held it. */
  #isNewPermission(permission: Permission): boolean {
    switch (permission.kind) {
      case 'object':
        return this.#isNew('CustomObject', permission.object);
      case 'field':
        return this.#isNew('CustomField', permission.field);
      case 'action':
        return !transitionKeys(this.#context.before).has(permission.action);
      default:
        return false;
    }
  }

  #bundle(component: ComponentOf<typeof PROFILE> | ComponentOf<typeof PERMISSION_SET>): void {
    const type = isOf(component, PROFILE) ? PROFILE : PERMISSION_SET;
    const old = findComponent(this.#context.before, type, component.fullName);
    const [before, after] = [givingOf(old), givingOf(component)];
    const [had, has] = [givenBy([before]), givenBy([after])];
    for (const permission of permissionsOf(after))
      if (!had(permission) && !this.#held(permission) && !this.#isNewPermission(permission))
        this.#denied(
          component,
          pointerOf(permission, after),
          `Only who holds ${nameOfPermission(permission)} can give it to others.`,
        );
    for (const permission of permissionsOf(before))
      if (!has(permission) && !this.#held(permission))
        this.#denied(component, '', `Only who holds ${nameOfPermission(permission)} can take it from others.`);
  }

  /** Who stands above a role reaches what is owned by those who hold it. */
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
          `${rule.fullName} opens the records of its members to ${to.role ?? to.group}, and you do not reach all of them.`,
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

  /** Whether the actor reaches all records of an object, as the configuration is now. */
  #covers(object: string, needed: Coverage): boolean {
    const shared = findComponent(this.#context.before, CUSTOM_OBJECT, object)?.body.sharingDefault ?? 'private';
    const given = (right: 'viewAll' | 'modifyAll'): boolean => this.#held({ kind: 'object', object, right });
    const held: Coverage = given('modifyAll') ? 'full' : given('viewAll') ? 'read' : 'none';
    return Math.max(RANK[held], RANK[BY_DEFAULT[shared]]) >= RANK[needed];
  }

  #object(component: ObjectComponent): void {
    const old = findComponent(this.#context.before, CUSTOM_OBJECT, component.fullName);
    const { sharingDefault } = component.body;
    if (!old || old.body.sharingDefault === sharingDefault) return;
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

  /** Whether the actor reaches all records that a rule opens. */
  #reaches({ object, kind, from, access }: ComponentOf<typeof SHARING_RULE>['body']): boolean {
    if (kind === 'owner' && from?.role !== undefined && this.#isAbove(from.role)) return true;
    return this.#covers(object, access === 'read' ? 'read' : 'full');
  }

  #duplicateRule(component: ComponentOf<typeof DUPLICATE_RULE>): void {
    const { object, scope } = component.body;
    const old = findComponent(this.#context.before, DUPLICATE_RULE, component.fullName);
    if (scope !== 'all' || this.#isNew('CustomObject', object)) return;
    if (old && change(old.body, component.body) === null) return;
    if (!this.#covers(object, 'read'))
      this.#denied(component, '/scope', 'The rule tells of records that you do not see all of.');
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

  /** Whether who sees a parent sees all of the records that a rollup is over. */
  #coversChildren({ childObject, referenceField }: NonNullable<FieldComponent['body']['rollup']>): boolean {
    if (this.#isNew('CustomObject', childObject) || this.#covers(childObject, 'read')) return true;
    const { before, fieldsOf } = this.#context;
    const shared = findComponent(before, CUSTOM_OBJECT, childObject)?.body.sharingDefault;
    const parents = [...fieldsOf(childObject).values()].filter(({ body }) => isMasterDetail(body));
    return shared === 'controlledByParent' && parents.length === 1 && parents[0]!.body.apiName === referenceField;
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

  #keeps(component: Component, property: string, needed: readonly string[]): void {
    const missing = needed.find((action) => !this.#held({ kind: 'action', action }));
    if (missing === undefined) return;
    const pointer = Object.hasOwn(component.body, property) ? `/${property}` : '';
    this.#denied(component, pointer, `Only who holds ${missing} can change what it leads to.`);
  }

  /** What an expression reads it tells to those who see what comes of it; what an effect sets, it sets for anybody. */
  #expressions(component: Component): void {
    const old = this.#context.before.get(componentKey(component.type, component.fullName));
    for (const { fullName, pointer, access } of findKind(component.type)?.references?.(component.body) ?? []) {
      if (access === undefined || this.#isNew('CustomField', fullName)) continue;
      if (old && isDeepStrictEqual(partOf(old, pointer, component), partOf(component, pointer, component))) continue;
      if (!this.#held({ kind: 'field', field: fullName, right: access }))
        this.#denied(component, pointer, `Only who holds ${access} on ${fullName} can name it here.`);
    }
  }

  /** A client acts as its user without asking, for whoever holds its secret or one of its keys. */
  #client(component: ComponentOf<typeof EXTERNAL_CLIENT>): void {
    const { body, fullName } = component;
    const old = findComponent(this.#context.before, EXTERNAL_CLIENT, fullName)?.body;
    if (!this.#actor.system.has('manageClients')) this.#denied(component, '', 'Changing clients needs manageClients.');
    if (old && change(old, body) === null) return;
    if (body.integrationUser !== undefined)
      this.#context.warning(
        'ACTS_AS_USER',
        component,
        '/integrationUser',
        `Whoever holds the secret or a key of the client does everything that ${body.integrationUser} may do.`,
      );
    if (managesAccess(this.#actor)) return;
    const [now, then] = [body.integrationUser?.toLowerCase(), old?.integrationUser?.toLowerCase()];
    for (const username of new Set([now, then])) {
      if (username === undefined) continue;
      const pointer = username === now ? '/integrationUser' : '';
      const user = this.#clientUsers.get(username);
      if (!this.#held({ kind: 'system', name: 'manageUsers' }))
        this.#denied(component, pointer, 'A client that acts as a user is changed by those who hold manageUsers.');
      // Whoever took a name that nobody has would be the one that the client acts as.
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
  if (first !== 'transitions') return body[first];
  const key = now.body.transitions?.[Number(index)]?.key;
  const transitions = body['transitions'] as typeof now.body.transitions;
  return transitions?.find((transition) => transition.key === key);
}

/** Where a bundle names a permission. */
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
