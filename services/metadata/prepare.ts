/** A plan turned into what is sent to the database. Pure. Source: docs/reference/metadata.md#apply. */
import { tenantSchema } from '../../lib/context.ts';
import type { TenantInfo } from '../../lib/schema/snapshot.ts';
import { identifier, literal } from '../../lib/values/sql-text.ts';
import { COMPILER_VERSION, compileSnapshot } from './compile.ts';
import { rollupsOf } from './kinds/compile-rollup.ts';
import type { Component, State } from './kinds/component.ts';
import { GROUP } from './kinds/group.ts';
import { tableOf } from './kinds/registry.ts';
import { ROLE } from './kinds/role.ts';
import { auditDays } from './kinds/tenant-settings.ts';
import { alteredModel } from './physical/altered.ts';
import { type Ddl, ddl } from './physical/ddl.ts';
import { droppedRollupsSql, restoringSql } from './physical/restored.ts';
import { makeRoomSql, modelWithRetained } from './physical/retained.ts';
import { rollupDdl, rollupModel } from './physical/rollups.ts';
import { timezoneIn } from './planner/alterations.ts';
import type { Change, Plan } from './planner/plan.ts';

/** The part of a plan that a commit stores. */
export interface PreparedCommit {
  readonly version: number;
  /** JSON of the changed components, and how many they are. */
  readonly components: string;
  readonly changes: number;
  /** JSON of the names of the deleted components. */
  readonly deleted: string;
  /** JSON of the names of components that are no longer kept as deleted ones. */
  readonly forgotten: string;
  /** JSON: `[{type, full_name}]` of everything that the plan changes. */
  readonly touched: string;
  /** The tenant as the new snapshot says. */
  readonly tenant: TenantInfo;
  /** How long its audit trail is kept. */
  readonly auditDays: number;
  readonly snapshot: Uint8Array;
  /** Version of the compiler that made it. */
  readonly compiler: number;
  /** For the audit trail; JSON. */
  readonly summary: string;
}

/** A plan as statements and texts: all that applying it needs, and nothing that has to be computed any more. */
export interface Prepared {
  readonly version: number;
  /** All of it is one message. */
  readonly ddl: Ddl;
  readonly commit: PreparedCommit;
}

export interface PrepareOptions {
  readonly deploymentId: string | null;
  /** Types whose components become the platform's own: read-only for the tenant. */
  readonly systemTypes?: ReadonlySet<string>;
}

/** Works a plan out for `applyPrepared`; null when it changes nothing. Pure. */
export function prepare(
  tenant: TenantInfo,
  version: number,
  before: State,
  plan: Plan,
  { deploymentId, systemTypes = NONE }: PrepareOptions,
): Prepared | null {
  if (plan.changed.length + plan.deleted.length === 0) return null;
  const names = (changes: readonly Change[]): string[] => changes.map(({ type, fullName }) => `${type}:${fullName}`);
  return {
    version,
    ddl: planDdl(tenant.id, before, plan),
    commit: {
      ...compiled(tenant, version, plan.after),
      components: componentRows(plan.changed, systemTypes),
      changes: plan.changed.length + plan.deleted.length,
      deleted: namesOf(plan.deleted),
      forgotten: namesOf([...plan.changed, ...plan.replaced]),
      touched: namesOf([...plan.creates, ...plan.updates, ...plan.deletes]),
      summary: JSON.stringify({
        metadataVersion: version,
        deploymentId,
        creates: names(plan.creates),
        updates: names(plan.updates),
        deletes: names(plan.deletes),
      }),
    },
  };
}

/** The configuration as it is, compiled by this version of the platform, as a version of its own. Pure. */
export function compiledAgain(tenant: TenantInfo, version: number, state: State): Prepared {
  return {
    version,
    ddl: { statements: [], ahead: [], altered: [] },
    commit: {
      ...compiled(tenant, version, state),
      components: '[]',
      changes: 0,
      deleted: '[]',
      forgotten: '[]',
      touched: '[]',
      summary: JSON.stringify({ metadataVersion: version, deploymentId: null, creates: [], updates: [], deletes: [] }),
    },
  };
}

/** The part of the whole configuration that a version stores. */
function compiled(tenant: TenantInfo, version: number, state: State) {
  const snapshot = compileSnapshot(tenant, version, state);
  return {
    version,
    tenant: snapshot.tenant,
    auditDays: auditDays(state),
    snapshot: Buffer.from(JSON.stringify(snapshot)),
    compiler: COMPILER_VERSION,
  };
}

const namesOf = (components: readonly Pick<Component, 'type' | 'fullName'>[]): string =>
  JSON.stringify(components.map(({ type, fullName }) => ({ type, full_name: fullName })));

const NONE: ReadonlySet<string> = new Set();

/** Objects whose tables a plan may touch. */
function touchedObjects(before: State, plan: Plan): Set<string> {
  const names = new Set([...plan.changed, ...plan.deleted].map(tableOf).filter((name) => name !== null));
  for (const { component } of plan.alterations) names.add(component.body.object);
  // The column of a rollup is of the type of the field that it is over.
  const rollups = [...rollupsOf(before), ...rollupsOf(plan.after)].map(({ body }) => ({
    parent: body.object,
    child: body.rollup.childObject,
  }));
  for (let size = -1; size !== names.size; ) {
    size = names.size;
    for (const { parent, child } of rollups) if (names.has(child)) names.add(parent);
  }
  return names;
}

function planDdl(tenantId: string, before: State, plan: Plan): Ddl {
  const touched = touchedObjects(before, plan);
  const schema = identifier(tenantSchema(tenantId));
  const shares = sharesOfDeleted(plan.deleted, schema);
  const room = plan.replacements.map(({ kept }) => kept);
  const { retained } = plan;
  const old = modelWithRetained(before, retained.before, touched);
  const altered = alteredModel(plan.alterations, old, { schema, timezone: timezoneIn(plan) });
  const rollups = rollupDdl(
    withoutRollupsOver(altered.converted, rollupModel(before)),
    rollupModel(plan.after),
    schema,
  );
  const model = modelWithRetained(plan.after, retained.after, touched);
  const change = { ...plan, before, retained: retained.before, model };
  const tables = ddl(altered.model, model, schema, schema);
  const restoring = restoringSql(change, schema);
  const first = [
    ...shares,
    ...room.flatMap((kept) => makeRoomSql(schema, kept)),
    ...altered.statements,
    ...rollups.first,
    ...restoring,
  ];
  const last = [...rollups.last, ...droppedRollupsSql(change, schema)];
  const plain = (sql: string): { sql: string } => ({ sql });
  const others = [...plan.alterations.map(({ component }) => component), ...room].map(tableOf);
  return {
    statements: [...first.map(plain), ...tables.statements, ...last.map(plain)],
    // Indexes and keys are made of values that are not there before.
    ahead: altered.statements.length + restoring.length > 0 ? [] : tables.ahead,
    altered: [...new Set([...tables.altered, ...others.filter((name) => name !== null)])].sort(),
  };
}

/** The rollups as if those over these objects had no values yet, so that they are computed. */
function withoutRollupsOver(
  children: ReadonlySet<string>,
  model: ReturnType<typeof rollupModel>,
): ReturnType<typeof rollupModel> {
  const figures = [...model.figures].map(
    ([name, one]) => [name, children.has(one.child) ? { ...one, columns: [] } : one] as const,
  );
  return { ...model, figures: new Map(figures) };
}

/** Records are shared with roles and groups by name: a new one of the same name is a different one. */
const sharesOfDeleted = (deleted: readonly Component[], schema: string): string[] =>
  [ROLE, GROUP].flatMap(({ type }) => {
    const names = deleted.filter((component) => component.type === type).map(({ fullName }) => literal(fullName));
    return names.length === 0
      ? []
      : [
          `DELETE FROM ${schema}._shares
            WHERE principal_type = ${literal(type.toLowerCase())} AND principal_id IN (${names.join(', ')})`,
        ];
  });

/** Changed components as the JSON that the commit stores them from. */
const componentRows = (changed: readonly Component[], systemTypes: ReadonlySet<string>): string =>
  JSON.stringify(
    changed.map(({ type, fullName, path, yaml, body, hash, system }) => ({
      type,
      full_name: fullName,
      path,
      yaml,
      body,
      hash,
      system: systemTypes.has(type) || system,
    })),
  );
