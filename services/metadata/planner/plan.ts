/**
 * The planner: configuration as it is, plus a project, gives the ordered changes and all problems of
 * them. Pure; what only the data can tell comes back as questions (`dataChecks`) for the store.
 */

import { jcs, membersOf, type PackageType, sha256 } from '../../../lib/metadata/manifest.ts';
import type { RateLimitOverrides } from '../../../lib/schema/snapshot.ts';
import { byCodePoint } from '../../../lib/values/code-points.ts';
import { similarName } from '../../../lib/values/similar.ts';
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { changesOf } from '../kinds/changes.ts';
import { type Component, componentKey, componentsByObject, type State } from '../kinds/component.ts';
import type { Acting, CheckContext, Problem, Reference } from '../kinds/kind.ts';
import { findKind, KINDS, kindOrder } from '../kinds/registry.ts';
import { isRecord, type Project } from '../project/project.ts';
import { type Alteration, alterations } from './alterations.ts';
import { type DataCheck, dataChecks } from './data-checks.ts';
import {
  checkDeletable,
  checkDependents,
  checksOfDeleted,
  deletedComponents,
  dependentsOfDeleted,
  deployedAndDeleted,
  refusedMember,
} from './deletions.ts';
import { checkGrants, checksToAsk } from './grants.ts';
import { checksOfReplaced, madeRoom, type Replacement, replacements } from './reserved.ts';

export interface Change {
  type: string;
  fullName: string;
  path: string;
  properties: { name: string; from: unknown; to: unknown }[];
  destructive: boolean;
  impact: { records: number | null; dependents: { type: string; fullName: string }[] };
  reversible: boolean;
}

/** A plan's changes and problems, as the API shows them. */
export interface PlanLists {
  readonly creates: Change[];
  readonly updates: Change[];
  readonly deletes: Change[];
  readonly noops: Change[];
  readonly blocked: Problem[];
  readonly warnings: Problem[];
}

export interface Plan extends PlanLists {
  /** Questions to the tenant's data whose answers may add problems. */
  readonly dataChecks: readonly DataCheck[];
  /** The configuration after the plan. Changed components have `changedAtVersion` 0 until they are stored. */
  readonly after: State;
  readonly changed: readonly Component[];
  /** Components that the plan deletes, as they were. */
  readonly deleted: readonly Component[];
  /** Fields whose values it makes into others. */
  readonly alterations: readonly Alteration[];
  /** New components of the names of deleted ones that are kept. */
  readonly replacements: readonly Replacement[];
  /** Kept components that are dropped for these. */
  readonly replaced: readonly Component[];
  /** Deleted components that are kept: before the plan, without what it replaces, and after it. */
  readonly retained: { readonly before: State; readonly after: State };
  /** Restores what was there before: texts of changed components, and the members to delete. */
  readonly inverse: { readonly files: Readonly<Record<string, string>>; readonly deletes: readonly PackageType[] };
}

export type PlanOptions = {
  readonly allowDestructiveChanges: boolean;
  /** The most that the limits of the tenant can be set to; absent: no bound. */
  readonly ceilings?: Readonly<Record<keyof RateLimitOverrides, number>>;
  /** The mail domains that are verified for the tenant; absent: not known at this moment. */
  readonly verifiedDomains?: ReadonlySet<string> | null;
  /** Components that were deleted before and are still kept; see `CheckContext.retained`. */
  readonly retained?: State;
  /** The plan undoes another one: what is kept of deleted components comes back, and it deletes without the flag. */
  readonly restores?: boolean;
} & ({ readonly platform: true } | ({ readonly platform: false } & Acting));

/** A caller without any permission. */
const nobody = ({ actor, clientUsers }: Acting): Acting => ({
  actor: {
    ...actor,
    principal: { ...actor.principal, roleApiName: null },
    system: new Set(),
    actions: new Set(),
    bundles: [],
    memberships: { roles: [], groups: new Set() },
  },
  clientUsers,
});

/** True when a plan gives or takes anything beyond the rights of every deployer. */
export function handsOutRights(
  plan: Plan,
  before: State,
  project: Project,
  { restores, ...acting }: Acting & Required<Pick<PlanOptions, 'restores'>>,
): boolean {
  const { after, changed, deleted, retained, replacements: replacing } = plan;
  const blocked: Problem[] = [];
  const options = {
    platform: false,
    allowDestructiveChanges: true,
    retained: retained.before,
    restores,
    ...nobody(acting),
  } as const;
  const context = checkContext(before, after, project, options, { blocked, warnings: [] });
  for (const component of changed) findKind(component.type)?.check?.(component, context);
  checkGrants(changed, deleted, context);
  checksToAsk([...checksOfReplaced(replacing, context), ...dataChecks(changed, context, true)], context, blocked);
  return blocked.some(({ code }) => code === 'COMPONENT_PERMISSION_DENIED');
}

const order = (a: { type: string; fullName: string }, b: { type: string; fullName: string }): number =>
  kindOrder(a.type) - kindOrder(b.type) || byCodePoint(a.fullName, b.fullName);

export function makePlan(before: State, project: Project, options: PlanOptions): Plan {
  const deleted = deletedComponents(before, project).sort(order);
  const compared = compare(before, project, deleted, options.restores ? options.retained : undefined);
  const { after, changed, creates, noops } = compared;
  addDependents(compared.updates, after);
  const blocked: Problem[] = [...project.problems, ...deployedAndDeleted(deleted, project)];
  const warnings: Problem[] = [];
  const created = changed.filter((component) => !before.has(keyOf(component)));
  const replacing = replacements(created, options.retained ?? NOTHING, options.restores ?? false);
  const replaced = madeRoom(replacing, options.retained ?? NOTHING);
  const retained = without(options.retained ?? NOTHING, replaced);
  const context = checkContext(before, after, project, { ...options, retained }, { blocked, warnings });

  checkReadOnly(changed, context);
  checkDeletable(deleted, context);
  checkNames(changed, context);
  checkReferences(changed, context, new Set(deleted.map(keyOf)));
  for (const component of changed) findKind(component.type)?.check?.(component, context);
  const touched = new Set([...changed, ...deleted].map((component) => component.type));
  for (const kind of KINDS) if (touched.has(kind.type)) kind.checkAll?.(context);
  const dependents = dependentsOfDeleted(deleted, after);
  checkDependents(deleted, dependents, context);
  checkAffected([...changed, ...deleted], new Set([...changed, ...[...dependents.values()].flat()]), context);
  checkGrants(changed, deleted, context);
  const existing = alreadyThere(blocked, [...changed, ...deleted], before, project, options);
  warnings.push(...existing);
  blocked.splice(0, Infinity, ...blocked.filter((problem) => !existing.has(problem)));
  checkDestructive(project, options, before, blocked, warnings);

  const altered = alterations(changed, context);
  const checks = checksToAsk(
    [
      ...checksOfReplaced(replacing, context),
      ...checksOfDeleted(deleted, context),
      ...dataChecks(changed, context, blocked.length === 0),
    ],
    context,
    blocked,
  );
  return {
    creates,
    updates: compared.updates.map((update) => (isListed(altered, update) ? lossy(update) : update)),
    deletes: deleted.map((component) => ({ ...change(component, []), destructive: true })),
    noops,
    blocked: distinct(blocked).sort(order),
    warnings: distinct(warnings).sort(order),
    dataChecks: checks,
    after,
    changed,
    deleted,
    alterations: altered,
    replacements: replacing,
    replaced,
    retained: { before: retained, after: retainedAfter(retained, changed, deleted) },
    inverse: inverse(changed, deleted, before),
  };
}

const isListed = (altered: readonly Alteration[], { type, fullName }: Change): boolean =>
  altered.some(({ listed }) => listed?.type === type && listed.fullName === fullName);

const lossy = (update: Change): Change => ({ ...update, destructive: true, reversible: false });

const NOTHING: State = new Map();

function without(retained: State, replaced: readonly Component[]): State {
  if (replaced.length === 0) return retained;
  const kept = new Map(retained);
  for (const component of replaced) kept.delete(keyOf(component));
  return kept;
}

/** Deleted components kept after a plan, without the restored ones. */
function retainedAfter(retained: State, changed: readonly Component[], deleted: readonly Component[]): State {
  if (retained.size === 0 && deleted.length === 0) return retained;
  const kept = new Map(retained);
  for (const { type, fullName } of changed) kept.delete(componentKey(type, fullName));
  for (const component of deleted) kept.set(componentKey(component.type, component.fullName), component);
  return kept;
}

/** Changes of a project to a configuration: its files first, then its deletions. */
function compare(before: State, project: Project, deleted: readonly Component[], restored: State | undefined) {
  const changes: Record<'creates' | 'updates' | 'noops', Change[]> = { creates: [], updates: [], noops: [] };
  const changed: Component[] = [];
  const after = new Map(before);
  for (const draft of [...project.drafts.values()].sort(order)) {
    const key = componentKey(draft.type, draft.fullName);
    const old = before.get(key);
    if (old && old.hash === draft.hash) {
      changes.noops.push(change(draft, []));
      continue;
    }
    const component: Component = {
      type: draft.type,
      fullName: draft.fullName,
      path: draft.path,
      body: draft.body,
      yaml: draft.yaml,
      hash: draft.hash,
      system: (old ?? restored?.get(key))?.system ?? false,
      changedAtVersion: 0,
      updatedAt: '',
      updatedById: null,
    };
    after.set(key, component);
    changed.push(component);
    changes[old ? 'updates' : 'creates'].push(change(draft, differences(old?.body ?? {}, draft.body)));
  }
  for (const { type, fullName } of deleted) after.delete(componentKey(type, fullName));
  return { ...changes, changed: changed.filter(isIn(after)), after };
}

const keyOf = ({ type, fullName }: { readonly type: string; readonly fullName: string }): string =>
  componentKey(type, fullName);

const isIn =
  (state: State) =>
  ({ type, fullName }: Component): boolean =>
    state.has(componentKey(type, fullName));

const DID_YOU_MEAN = ' Did you mean ';

/** Bounded: each suggestion is a comparison with many names. */
const SUGGESTIONS_MAX = 100;

/** Input of the kinds' checks, and the sink of their findings. */
function checkContext(
  before: State,
  after: State,
  project: Project,
  options: PlanOptions,
  found: { readonly blocked: Problem[]; readonly warnings: Problem[] },
): CheckContext {
  const position: CheckContext['position'] = (component, pointer, offset) => {
    const draft = project.drafts.get(componentKey(component.type, component.fullName));
    return draft ? draft.position(pointer, offset) : { line: null, column: null };
  };
  let suggestionsLeft = SUGGESTIONS_MAX;
  const unread = new Set([...project.unread].filter((key) => !after.has(key)));
  const followsFromUnread = placesNaming(unread);
  const report =
    (list: Problem[]): CheckContext['problem'] =>
    (code, component, pointer, message, more = {}) => {
      if (followsFromUnread(component, pointer)) return;
      const { line, column } = position(component, pointer, more.offset);
      const { type, fullName, path } = component;
      const { remedy = null, details } = more;
      list.push({ code, type, fullName, path, line, column, message, remedy, ...(details ? { details } : {}) });
    };
  const fields = fieldsByObject(after);
  const none: ReadonlyMap<string, FieldComponent> = new Map();
  return {
    before,
    after,
    unread,
    retained: options.retained ?? NOTHING,
    restores: options.restores ?? false,
    alters: new Set(options.allowDestructiveChanges ? membersOf(project.destructive?.alters ?? []).map(keyOf) : []),
    platform: options.platform,
    acting: options.platform ? null : options,
    ceilings: options.ceilings ?? null,
    verifiedDomains: options.verifiedDomains ?? null,
    fieldsOf: (object) => fields.get(object) ?? none,
    position,
    meant(name, names, prefix = '') {
      if (suggestionsLeft-- <= 0) return '';
      const similar = similarName(name, names);
      return similar === null ? '' : `${DID_YOU_MEAN}${prefix}${similar}?`;
    },
    problem: report(found.blocked),
    warning: report(found.warnings),
  };
}

/** True when a component names one of those with these keys at a place. */
function placesNaming(keys: ReadonlySet<string>): (component: Component, pointer: string) => boolean {
  const places = new WeakMap<Component, ReadonlySet<string>>();
  return (component, pointer) => {
    if (keys.size === 0) return false;
    let known = places.get(component);
    if (!known) {
      const references = findKind(component.type)?.references?.(component.body) ?? [];
      known = new Set(references.filter((one) => keys.has(keyOf(one))).map((one) => one.pointer));
      places.set(component, known);
    }
    return known.has(pointer);
  };
}

const fieldsByObject = (state: State): Map<string, Map<string, FieldComponent>> =>
  new Map(
    [...componentsByObject(state, CUSTOM_FIELD)].map(([object, fields]) => [
      object,
      new Map(fields.map((field) => [field.body.apiName, field])),
    ]),
  );

const change = (draft: { type: string; fullName: string; path: string }, properties: Change['properties']): Change => ({
  type: draft.type,
  fullName: draft.fullName,
  path: draft.path,
  properties,
  destructive: false,
  impact: { records: null, dependents: [] },
  reversible: findKind(draft.type)?.reversible ?? false,
});

/** Components that refer to an updated one; an object's own fields are left out. */
function addDependents(updates: readonly Change[], after: State): void {
  const byKey = new Map(updates.map((update) => [componentKey(update.type, update.fullName), update]));
  if (byKey.size === 0) return;
  for (const { type, fullName, body } of after.values())
    for (const reference of findKind(type)?.references?.(body) ?? []) {
      const update = reference.permission ? undefined : byKey.get(componentKey(reference.type, reference.fullName));
      if (
        update &&
        !(update.type === type && update.fullName === fullName) &&
        !(reference.type === 'CustomObject' && reference.pointer === '/object')
      ) {
        const { dependents } = update.impact;
        const last = dependents.at(-1);
        // A component can refer to another in several places; they follow each other.
        if (last?.type !== type || last.fullName !== fullName) dependents.push({ type, fullName });
      }
    }
}

/** The same finding can come up from both ends of a relation. */
function distinct(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>();
  return problems.filter((problem) => {
    const key = JSON.stringify([problem.code, problem.type, problem.fullName, problem.line, problem.message]);
    return !seen.has(key) && seen.add(key);
  });
}

/**
 * Properties that differ, each named by its way through the mappings (`fields.Invoice__c.Amount__c.edit`). The order of
 * keys says nothing: bodies come back from the database in another one.
 */
function differences(from: Component['body'], to: Component['body']): Change['properties'] {
  const found: Change['properties'] = [];
  const walk = (a: Record<string, unknown>, b: Record<string, unknown>, prefix: string): void => {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const [x, y] = [Object.hasOwn(a, name) ? a[name] : undefined, Object.hasOwn(b, name) ? b[name] : undefined];
      if (isRecord(x) && isRecord(y)) walk(x, y, `${prefix}${name}.`);
      else if (x === undefined || y === undefined || jcs(x) !== jcs(y))
        found.push({ name: prefix + name, from: x ?? null, to: y ?? null });
    }
  };
  walk(from, to, '');
  return found.sort((a, b) => byCodePoint(a.name, b.name));
}

function checkReadOnly(changed: readonly Component[], context: CheckContext): void {
  if (context.platform) return;
  for (const component of changed)
    if (component.system)
      context.problem(
        'SYSTEM_COMPONENT_READ_ONLY',
        component,
        '',
        'The platform ships it and only the platform changes it.',
        {
          remedy: `Leave ${component.path} as it was retrieved.`,
        },
      );
}

/** Changes that can never be applied. */
const UNAPPLIABLE: ReadonlySet<Problem['code']> = new Set(['EXPRESSION_INVALID', 'DEPENDENCY_MISSING']);

/**
 * Those of the problems that are of components which the plan leaves as they are, and that stood against these already:
 * an earlier version of the platform took them, and what does not touch them is not refused for them.
 */
function alreadyThere(
  problems: readonly Problem[],
  changed: readonly Component[],
  before: State,
  project: Project,
  options: PlanOptions,
): ReadonlySet<Problem> {
  const own = new Set(changed.map(({ type, fullName }) => componentKey(type, fullName)));
  const foreign = problems.filter((problem) => {
    const key = componentKey(problem.type, problem.fullName);
    return before.has(key) && !own.has(key) && !UNAPPLIABLE.has(problem.code) && !project.problems.includes(problem);
  });
  if (foreign.length === 0) return new Set();
  const old: Problem[] = [];
  const context = checkContext(before, before, project, options, { blocked: old, warnings: [] });
  for (const key of new Set(foreign.map(({ type, fullName }) => componentKey(type, fullName)))) {
    const component = before.get(key);
    if (component) findKind(component.type)?.check?.(component, context);
  }
  const touched = new Set(changed.map(({ type }) => type));
  for (const kind of KINDS) if (touched.has(kind.type)) kind.checkAll?.(context);
  const identity = ({ code, type, fullName, message }: Problem): string =>
    JSON.stringify([code, type, fullName, message.split(DID_YOU_MEAN, 1)]);
  const known = new Set(old.map(identity));
  return new Set(foreign.filter((problem) => known.has(identity(problem))));
}

/** Two names may not differ in upper and lower case only: not every file system could hold both files. */
function checkNames(changed: readonly Component[], context: CheckContext): void {
  const named = new Map<string, Component>();
  const nameOf = ({ type, body }: Component): string =>
    JSON.stringify([type, body['object'] ?? null, String(body['apiName']).toLowerCase()]);
  for (const component of context.after.values()) {
    const name = nameOf(component);
    if (!named.has(name)) named.set(name, component);
  }
  for (const component of changed) {
    const other = named.get(nameOf(component));
    if (other && other !== component && !context.before.has(componentKey(component.type, component.fullName)))
      context.problem(
        'NAME_CONFLICT',
        component,
        '/apiName',
        `Differs from ${other.fullName} in upper and lower case only.`,
      );
  }
}

/** A reference to a deleted component is a problem of the deletion. */
function checkReferences(changed: readonly Component[], context: CheckContext, reported: ReadonlySet<string>): void {
  let names: ReadonlyMap<string, readonly string[]> | undefined;
  for (const component of changed) {
    const missing: Reference[] = (findKind(component.type)?.references?.(component.body) ?? []).filter((reference) => {
      const key = keyOf(reference);
      return !reference.ownCheck && !context.after.has(key) && !reported.has(key);
    });
    for (const { type, fullName, pointer } of missing) {
      const { group, prefix, name } = groupOf(type, fullName);
      names ??= namesByGroup(context.after);
      const meant = context.meant(name, names.get(group) ?? [], prefix);
      context.problem(
        'DEPENDENCY_MISSING',
        component,
        pointer,
        `${type} ${fullName} is neither in the project nor in the tenant.${meant}`,
        { remedy: `Add ${type} ${fullName} to the project.`, details: { members: [{ type, fullName }] } },
      );
    }
  }
}

/** The names of components by `groupOf`. */
function namesByGroup(state: State): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { type, fullName } of state.values()) {
    const { group, name } = groupOf(type, fullName);
    const names = groups.get(group);
    if (names) names.push(name);
    else groups.set(group, [name]);
  }
  return groups;
}

/** Among whose names that of a component is one: those of the same type, and of the same object. */
function groupOf(type: string, fullName: string): { group: string; prefix: string; name: string } {
  const start = fullName.indexOf('.') + 1;
  const prefix = fullName.slice(0, start);
  return { group: `${type}:${prefix}`, prefix, name: fullName.slice(start) };
}

/**
 * A change can break components that did not change themselves, such as rules over the fields of an object. Of those in
 * `known` the problems are known.
 */
function checkAffected(changed: readonly Component[], known: ReadonlySet<Component>, context: CheckContext): void {
  const changes = changesOf(changed, context.after);
  for (const component of context.after.values()) {
    const kind = known.has(component) ? undefined : findKind(component.type);
    if (kind?.isAffected?.(component, changes)) kind.check?.(component, context);
  }
}

function checkDestructive(
  project: Project,
  options: PlanOptions,
  before: State,
  blocked: Problem[],
  warnings: Problem[],
): void {
  const make = (type: string, fullName: string, finding: Finding): Problem => ({
    ...finding,
    type,
    fullName,
    path: before.get(componentKey(type, fullName))?.path ?? null,
    line: null,
    column: null,
  });
  const manifest = project.destructive;
  if (!manifest) {
    if (options.allowDestructiveChanges) warnings.push(make('Package', '*', FLAG_UNUSED));
    return;
  }
  for (const { type, fullName } of membersOf([...manifest.types, ...manifest.alters])) {
    const refused = refusedMember(type, fullName, before);
    if (refused) blocked.push(make(type, fullName, refused));
    else if (!options.allowDestructiveChanges && !options.restores) blocked.push(make(type, fullName, NOT_ALLOWED));
  }
}

type Finding = Pick<Problem, 'code' | 'message' | 'remedy'>;

const FLAG_UNUSED: Finding = {
  code: 'DESTRUCTIVE_FLAG_UNUSED',
  message: 'allowDestructiveChanges is set, and no destructive manifest names anything.',
  remedy: 'Omit the flag.',
};

const NOT_ALLOWED: Finding = {
  code: 'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
  message: 'The destructive manifest names it, and allowDestructiveChanges is not set.',
  remedy: 'When the loss is intended, deploy with allowDestructiveChanges: true (erp: --allow-destructive).',
};

function inverse(changed: readonly Component[], deleted: readonly Component[], before: State): Plan['inverse'] {
  const files: Record<string, string> = Object.fromEntries(deleted.map(({ path, yaml }) => [path, yaml]));
  const deletes = new Map<string, string[]>();
  for (const { type, fullName, path } of changed) {
    const old = before.get(componentKey(type, fullName));
    if (old) files[path] = old.yaml;
    else deletes.set(type, [...(deletes.get(type) ?? []), fullName]);
  }
  return { files, deletes: [...deletes].map(([name, members]) => ({ name, members })) };
}

/**
 * Identity of a plan: what changes, and from which version of each touched component. Counts of records are left out;
 * they change with the data and not with the configuration.
 */
export function planHash(plan: Plan, before: State): string {
  const bare = (list: readonly Change[]): object[] =>
    list.map(({ type, fullName, path, properties, destructive }) => ({
      type,
      fullName,
      path,
      properties,
      destructive,
    }));
  const versions = [...plan.creates, ...plan.updates, ...plan.deletes].map(({ type, fullName }) => [
    componentKey(type, fullName),
    before.get(componentKey(type, fullName))?.changedAtVersion ?? null,
  ]);
  return `sha256:${sha256(
    jcs({ creates: bare(plan.creates), updates: bare(plan.updates), deletes: bare(plan.deletes), versions }),
  )}`;
}

/**
 * Components of the project that changed after `base`: others' work that this deployment would overwrite. What
 * was deleted after it would come back.
 */
export function drift(before: State, retained: State, project: Project, base: number): Component[] {
  const { types = [], alters = [] } = project.destructive ?? {};
  const keys = new Set([
    ...membersOf([...project.package.types, ...types, ...alters]).map(({ type, fullName }) =>
      componentKey(type, fullName),
    ),
    ...deletedComponents(before, project).map(({ type, fullName }) => componentKey(type, fullName)),
  ]);
  return [...keys].flatMap((key) => {
    const component = before.get(key) ?? retained.get(key);
    return component && component.changedAtVersion > base ? [component] : [];
  });
}
