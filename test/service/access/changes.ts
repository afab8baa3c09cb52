/**
 * Random changes of a world: what each makes of the world, and the statements that leave in the database what a write of
 * the platform leaves there.
 */
import fc from 'fast-check';
import type { Share } from '../../../lib/access/sharing.ts';
import {
  auditRow,
  count,
  type Generate,
  id,
  OBJECTS,
  type ObjectName,
  PARENTS,
  pick,
  type Row,
  text,
  VALUES,
  type World,
} from './world.ts';

interface Place {
  readonly object: ObjectName;
  readonly row: Row;
}

/** A deleted record, and the world as it was just before. */
interface Deleted extends Place {
  readonly root: string;
  readonly before: World;
}

/** A world and what became of it so far. */
export interface State {
  readonly world: World;
  readonly bin: readonly Deleted[];
  /** Entries of the history of each record: its operations, oldest first. */
  readonly told: ReadonlyMap<string, readonly string[]>;
  readonly versions: ReadonlyMap<string, number>;
}

export const startState = (world: World): State => ({ world, bin: [], told: new Map(), versions: new Map() });

export const versionOf = (state: State, recordId: string): number => state.versions.get(recordId) ?? 1;

interface Changed {
  readonly state: State;
  readonly statements: readonly string[];
}

/**
 * One of the changes that the world has room for; null when the one picked has none. Often it is about records that one
 * of the users in `focus` has or is given: changes outside any user's view show little.
 */
export function randomChange(g: Generate, state: State, schema: string, focus: readonly string[]): Changed | null {
  switch (count(g, 0, 13)) {
    case 0:
      return create(g, state, schema);
    case 1:
      return move(g, state, schema);
    case 2:
      return remove(g, state, schema);
    case 3:
      return restore(g, state, schema);
    case 4:
    case 5:
      return share(g, state, schema, focus);
    case 6:
    case 7:
      return unshare(g, state, schema);
    case 8:
    case 9:
    case 10:
      return updateRow(g, state, schema);
    default:
      return giveAway(g, state, schema, focus);
  }
}

const places = ({ world }: State): Place[] =>
  OBJECTS.flatMap((object) => world.rows[object].map((row) => ({ object, row })));

const userIdsOf = ({ world }: State): string[] => world.users.map(({ access }) => access.principal.userId);

type Kind = 'create' | 'update' | 'delete' | 'restore';

/** Entries of a change in audit and history. */
function trail(
  schema: string,
  kind: Kind,
  object: ObjectName,
  recordId: string,
  version: number,
  changes: object,
): string[] {
  const shared = [text(kind), text(object), text(recordId), String(version), `${text(JSON.stringify(changes))}::jsonb`];
  return [
    `INSERT INTO "${schema}"._audit (audit_id, channel, operation_id, outcome, request_id, kind, object, record_id, record_version, changes)
      VALUES (('ffffffff' || substr(gen_random_uuid()::text, 9))::uuid, 'api', 'data.records.change', 'committed', 'req', ${shared.join(', ')})`,
    `INSERT INTO "${schema}"._history (change_id, user_id, client_id, request_id, operation, object, record_id, record_version, changes)
      VALUES (gen_random_uuid(), gen_random_uuid(), 'test', 'req', ${shared.join(', ')})`,
  ];
}

const from = (row: Row): object =>
  Object.fromEntries(Object.entries(row.values).map(([name, value]) => [name, { from: value, to: null }]));
const to = (row: Row): object =>
  Object.fromEntries(Object.entries(row.values).map(([name, value]) => [name, { from: null, to: value }]));

const withRows = (world: World, object: ObjectName, rows: readonly Row[]): World => ({
  ...world,
  rows: { ...world.rows, [object]: rows },
});

function noted(
  state: State,
  world: World,
  kind: Kind,
  entries: readonly { recordId: string; version: number }[],
): State {
  const [told, versions] = [new Map(state.told), new Map(state.versions)];
  for (const { recordId, version } of entries) {
    told.set(recordId, [...(told.get(recordId) ?? []), kind]);
    versions.set(recordId, version);
  }
  return { ...state, world, told, versions };
}

/** Sets fields of a record. */
function set(state: State, schema: string, { object, row }: Place, values: Record<string, unknown>): Changed | null {
  const old: Record<string, unknown> = { ownerId: row.ownerId, ...row.values };
  const changed = Object.keys(values).filter((name) => values[name] !== old[name]);
  if (changed.length === 0) return null;
  const { ownerId = row.ownerId, ...others } = values;
  const next: Row = { ...row, ownerId: ownerId as string, values: { ...row.values, ...others } };
  const version = versionOf(state, row.id) + 1;
  const rows = state.world.rows[object].map((item) => (item === row ? next : item));
  return {
    state: noted(state, withRows(state.world, object, rows), 'update', [{ recordId: row.id, version }]),
    statements: [
      `UPDATE "${schema}"."${object}" SET ${changed.map((name) => `"${name}" = ${text(values[name])}`).join(', ')}, "recordVersion" = ${version} WHERE id = ${text(row.id)}`,
      ...trail(
        schema,
        'update',
        object,
        row.id,
        version,
        Object.fromEntries(changed.map((name) => [name, { from: old[name], to: values[name] }])),
      ),
    ],
  };
}

function updateRow(g: Generate, state: State, schema: string): Changed | null {
  const found = places(state);
  if (found.length === 0) return null;
  const name = pick(g, Object.keys(VALUES));
  return set(state, schema, pick(g, found), { [name]: pick(g, VALUES[name]!) });
}

function giveAway(g: Generate, state: State, schema: string, focus: readonly string[]): Changed | null {
  const found = places(state);
  if (found.length === 0) return null;
  const theirs = found.filter(({ row }) => focus.includes(row.ownerId));
  const place = pick(g, theirs.length > 0 && g(fc.boolean) ? theirs : found);
  return set(state, schema, place, { ownerId: pick(g, userIdsOf(state)) });
}

function move(g: Generate, state: State, schema: string): Changed | null {
  const found = places(state).filter(({ object }) => Object.keys(PARENTS[object]).length > 0);
  if (found.length === 0) return null;
  const place = pick(g, found);
  const [field, parent] = pick(g, Object.entries(PARENTS[place.object]));
  return set(state, schema, place, { [field]: pick(g, state.world.rows[parent]).id });
}

function create(g: Generate, state: State, schema: string): Changed | null {
  const object = pick(g, OBJECTS);
  const parents = Object.entries(PARENTS[object]);
  if (parents.some(([, parent]) => state.world.rows[parent].length === 0)) return null;
  const row: Row = {
    id: id(OBJECTS.indexOf(object) + 2, 1000 + state.told.size + count(g, 0, 9) * 1000),
    ownerId: pick(g, userIdsOf(state)),
    createdAt: '2026-02-01T00:00:00.000Z',
    values: {
      ...Object.fromEntries(Object.entries(VALUES).map(([name, values]) => [name, pick(g, values)])),
      ...Object.fromEntries(parents.map(([field, parent]) => [field, pick(g, state.world.rows[parent]).id])),
    },
  };
  if (state.versions.has(row.id)) return null;
  const kept = { id: row.id, ownerId: row.ownerId, createdAt: row.createdAt, updatedAt: row.createdAt, ...row.values };
  const world = withRows(state.world, object, [...state.world.rows[object], row]);
  return {
    state: noted(state, world, 'create', [{ recordId: row.id, version: 1 }]),
    statements: [
      `INSERT INTO "${schema}"."${object}" ("recordVersion", ${Object.keys(kept)
        .map((name) => `"${name}"`)
        .join(', ')}) VALUES (1, ${Object.values(kept).map(text).join(', ')})`,
      ...trail(schema, 'create', object, row.id, 1, to(row)),
    ],
  };
}

const sameShare = (a: World['shares'][number], b: World['shares'][number]): boolean =>
  a.recordId === b.recordId && a.principalType === b.principalType && a.principalId === b.principalId;

function share(g: Generate, state: State, schema: string, focus: readonly string[]): Changed | null {
  const found = places(state);
  if (found.length === 0) return null;
  const { world } = state;
  const { object, row } = pick(g, found);
  const principals: Pick<Share, 'principalType' | 'principalId'>[] = [
    { principalType: 'user', principalId: pick(g, focus) },
    { principalType: 'user', principalId: pick(g, userIdsOf(state)) },
    ...Object.keys(world.snapshot.roles).map((name) => ({ principalType: 'role' as const, principalId: name })),
    ...Object.keys(world.snapshot.groups).map((name) => ({ principalType: 'group' as const, principalId: name })),
  ];
  const given = { object, recordId: row.id, ...pick(g, principals), access: pick(g, ['read', 'edit'] as const) };
  return {
    state: {
      ...state,
      world: { ...world, shares: [...world.shares.filter((item) => !sameShare(item, given)), given] },
    },
    statements: [
      `INSERT INTO "${schema}"._shares (share_id, created_by_id, object, record_id, principal_type, principal_id, access)
        VALUES (gen_random_uuid(), gen_random_uuid(), ${[object, row.id, given.principalType, given.principalId, given.access].map(text).join(', ')})
        ON CONFLICT (record_id, principal_type, principal_id, object) DO UPDATE SET access = excluded.access`,
      auditRow(schema),
    ],
  };
}

/** Only a record that is there can be shared and no longer shared. */
function unshare(g: Generate, state: State, schema: string): Changed | null {
  const { world } = state;
  const there = new Set(places(state).map(({ row }) => row.id));
  const found = world.shares.filter(({ recordId }) => there.has(recordId));
  if (found.length === 0) return null;
  const taken = pick(g, found);
  const columns =
    'share_id, object, record_id, principal_type, principal_id, access, reason, created_at, created_by_id';
  return {
    state: { ...state, world: { ...world, shares: world.shares.filter((item) => item !== taken) } },
    statements: [
      `WITH sh AS (DELETE FROM "${schema}"._shares WHERE record_id = ${text(taken.recordId)} AND principal_type = ${text(taken.principalType)} AND principal_id = ${text(taken.principalId)} RETURNING *)
        INSERT INTO "${schema}"._revoked_shares (${columns}, revoked_by_id, granted_tx) SELECT ${columns}, created_by_id, tx FROM sh`,
      auditRow(schema),
    ],
  };
}

/** With all details, and theirs. */
function remove(g: Generate, state: State, schema: string): Changed | null {
  const found = places(state);
  const object = pick(g, OBJECTS);
  const candidates = found.filter((place) => place.object === object);
  if (candidates.length === 0) return null;
  const root = pick(g, candidates);
  const doomed = [root];
  for (const master of doomed)
    for (const place of found)
      for (const [field, parent] of Object.entries(PARENTS[place.object]))
        if (parent === master.object && place.row.values[field] === master.row.id && !doomed.includes(place))
          doomed.push(place);
  let { world } = state;
  for (const place of doomed)
    world = withRows(
      world,
      place.object,
      world.rows[place.object].filter((item) => item !== place.row),
    );
  const gone = doomed.map((place): Deleted => ({ ...place, root: root.row.id, before: state.world }));
  const entries = doomed.map(({ row }) => ({ recordId: row.id, version: versionOf(state, row.id) }));
  return {
    state: { ...noted(state, world, 'delete', entries), bin: [...state.bin, ...gone] },
    statements: doomed.flatMap(({ object: name, row }) => [
      `WITH d AS (DELETE FROM "${schema}"."${name}" WHERE id = ${text(row.id)} RETURNING *)
        INSERT INTO "${schema}"._recycle_bin (object, record_id, root_id, record, record_version, deleted_by_id)
        SELECT ${text(name)}, d.id, ${text(root.row.id)}, to_jsonb(d), d."recordVersion", gen_random_uuid() FROM d`,
      ...trail(schema, 'delete', name, row.id, versionOf(state, row.id), from(row)),
    ]),
  };
}

/** All that one deletion took along, when everything it belongs to is there. */
function restore(g: Generate, state: State, schema: string): Changed | null {
  const roots = [...new Set(state.bin.map(({ root }) => root))];
  if (roots.length === 0) return null;
  const root = pick(g, roots);
  const back = state.bin.filter((item) => item.root === root);
  let { world } = state;
  for (const { object, row } of back) world = withRows(world, object, [...world.rows[object], row]);
  const whole = back.every(({ object, row }) =>
    Object.entries(PARENTS[object]).every(([field, parent]) =>
      world.rows[parent].some((item) => item.id === row.values[field]),
    ),
  );
  if (!whole) return null;
  const entries = back.map(({ row }) => ({ recordId: row.id, version: versionOf(state, row.id) + 1 }));
  return {
    state: { ...noted(state, world, 'restore', entries), bin: state.bin.filter((item) => item.root !== root) },
    statements: back.flatMap(({ object, row }) => [
      `WITH d AS (DELETE FROM "${schema}"._recycle_bin WHERE object = ${text(object)} AND record_id = ${text(row.id)} RETURNING *)
        INSERT INTO "${schema}"."${object}" SELECT n.* FROM d, jsonb_populate_record(NULL::"${schema}"."${object}", d.record || jsonb_build_object('recordVersion', d.record_version + 1)) n`,
      ...trail(schema, 'restore', object, row.id, versionOf(state, row.id) + 1, to(row)),
    ]),
  };
}
