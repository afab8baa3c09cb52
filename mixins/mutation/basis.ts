/**
 * The basis of an approval: the effects of a dry run, field by field, and the configuration and plan that they depend
 * on. The transaction that executes computes its own and compares. Source: docs/reference/agents.md#stale-approvals.
 */
import { hash } from 'node:crypto';
import type { RequestContext } from '../../lib/context.ts';
import { isObject } from '../../lib/json/objects.ts';
import type { OperationCall } from '../../lib/operation.ts';
import { Sql } from '../database/sql.ts';
import type { Statement } from '../database/statement.ts';

/** Facts that only the service of an operation knows; it notes them in the unit. */
export interface BasisFacts {
  /** Version of the configuration that the effects depend on. */
  configuration: string | null;
  /** Identity of the plan of a deployment. */
  plan: string | null;
  /** True for a field whose value comes from other records or a counter and may differ in every execution. */
  isDerived: (objectApiName: string, field: string) => boolean;
}

export const newFacts = (): BasisFacts => ({ configuration: null, plan: null, isDerived: () => false });

/** A field of an entry of the trail. */
export interface EntryRow {
  /** Numbers the entry within the transaction. */
  readonly entry: string;
  readonly object: string | null;
  readonly kind: string | null;
  readonly recordId: string | null;
  readonly version: number | null;
  readonly field: string | null;
  /** JSON as the database writes it: numbers keep their digits. */
  readonly value: string | null;
}

/** All that a request under a run has written to the audit trail: its attempts before were rolled back. */
export function entriesStatement(
  schema: string,
  { agentRunId, requestId }: Pick<RequestContext, 'agentRunId' | 'requestId'>,
): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT e.audit_id AS entry, e.object, e.kind, e.record_id AS "recordId",
      e.record_version AS version, c.key AS field, c.value::text AS value
    FROM ${schema}._audit e
    LEFT JOIN LATERAL jsonb_each(CASE jsonb_typeof(e.changes) WHEN 'object' THEN e.changes END) c ON true
    WHERE e.agent_run_id = ${sql.bind(agentRunId, 'uuid')} AND e.request_id = ${sql.bind(requestId, 'text')}
      AND e.outcome = 'committed' AND e.code IS NULL`);
}

/** Hash of a value and the moments in it, in milliseconds. */
type Value = readonly [string, ...number[]];

/** Object, kind, id (empty: new), version, and values by field. */
type Effect = readonly [string, string, string, number | null, Readonly<Record<string, Value>>];

interface Basis {
  /** When it was computed, in milliseconds. */
  readonly at: number;
  readonly configuration: string | null;
  readonly plan: string | null;
  /** SHA-256 in place of a long list. */
  readonly effects: readonly Effect[] | string;
}

/** Parts of a basis that no longer hold. */
type Change = 'references' | 'record' | 'configuration' | 'plan' | 'effects';

interface Staleness {
  readonly changed: readonly Change[];
  /** Members of the request's body whose effect differs. */
  readonly fields: readonly string[];
}

/** A longer list of effects is kept as its hash. */
const LISTED_MAX_BYTES = 16 * 1024;

/** Moments that lie at the same distance from the execution are the same `now`. */
const NOW_TOLERANCE_MS = 5_000;

/** Entries that are no field hold ids and times that every execution makes anew. */
const NO_FIELDS: ReadonlySet<string> = new Set(['share', '@transition']);
const MADE_ANEW = /"(executionId|shareId|createdAt)": ?("[^"]*"|null)/g;
const MOMENT = /"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))"/g;

export function basisOf(rows: readonly EntryRow[], facts: BasisFacts, at: number): string {
  const created = new Set(rows.flatMap(({ kind, recordId }) => (kind === 'create' && recordId ? [recordId] : [])));
  const effects = [...Map.groupBy(rows, ({ entry }) => entry).values()]
    .map((ofEntry) => effectOf(ofEntry, facts, created))
    .filter((effect) => effect !== null)
    .sort((a, b) => compareTexts(JSON.stringify(a), JSON.stringify(b)));
  const text = JSON.stringify(effects);
  const { configuration, plan } = facts;
  const basis: Basis = {
    at,
    configuration,
    plan,
    effects: text.length <= LISTED_MAX_BYTES ? effects : hash('sha256', text),
  };
  return JSON.stringify(basis);
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** null: nothing but derived values, such as rollups of a parent. */
function effectOf(rows: readonly EntryRow[], facts: BasisFacts, created: ReadonlySet<string>): Effect | null {
  const [first] = rows;
  if (!first) return null;
  const { object, kind, recordId, version } = first;
  const values: Record<string, Value> = {};
  let derived = 0;
  for (const { field, value } of rows) {
    if (field === null || value === null || field === 'deploymentId') continue;
    if (object !== null && facts.isDerived(object, field)) derived++;
    else values[field] = hashedValue(field, value, created);
  }
  if (derived > 0 && kind === 'update' && Object.keys(values).length === 0) return null;
  const id = recordId === null || created.has(recordId) ? '' : recordId;
  return [object ?? '', kind ?? '', id, version, values];
}

function hashedValue(field: string, text: string, created: ReadonlySet<string>): Value {
  const moments: number[] = [];
  let bare = NO_FIELDS.has(field) ? text.replace(MADE_ANEW, '"$1":null') : text;
  bare = bare.replace(MOMENT, (whole, moment: string) => {
    const ms = Date.parse(moment);
    if (Number.isNaN(ms)) return whole;
    moments.push(ms);
    return '"<moment>"';
  });
  for (const id of created) bare = bare.replaceAll(id, '<new>');
  return [hash('sha256', bare).slice(0, 32), ...moments];
}

/** Differences between an approved basis and that of the execution; null: none. */
export function staleness(approved: string | undefined, actual: string, call: OperationCall): Staleness | null {
  const before = approved === undefined ? null : readBasis(approved);
  if (!before) return { changed: ['effects'], fields: [] };
  const now: Basis = JSON.parse(actual);
  const changed = new Set<Change>();
  const fields = new Set<string>();
  if (before.configuration !== now.configuration) changed.add('configuration');
  if (before.plan !== now.plan) changed.add('plan');
  if (Array.isArray(before.effects) && Array.isArray(now.effects))
    compareEffects([before, before.effects], [now, now.effects], call, changed, fields);
  else if (before.effects !== now.effects) changed.add('effects');
  // Effects follow from everything else.
  if (changed.size > 1) changed.delete('effects');
  return changed.size === 0 ? null : { changed: [...changed].sort(), fields: [...fields].sort() };
}

/** null: it was made by another version of the platform. */
function readBasis(text: string): Basis | null {
  if (!text.startsWith('{"at":')) return null;
  return JSON.parse(text);
}

type Timed = readonly [Pick<Basis, 'at'>, readonly Effect[]];

function compareEffects(
  [before, approved]: Timed,
  [now, actual]: Timed,
  call: OperationCall,
  changed: Set<Change>,
  fields: Set<string>,
): void {
  const name = ([object, kind, id]: Effect): string => JSON.stringify([object, kind, id]);
  if (JSON.stringify(approved.map(name).sort()) !== JSON.stringify(actual.map(name).sort())) {
    changed.add(call.path['externalIdField'] === undefined ? 'effects' : 'record');
    return;
  }
  // The order of entries of one kind of new records follows their values.
  const left = [...actual];
  for (const effect of approved) {
    const candidates = left.filter((one) => name(one) === name(effect));
    const same = (one: Effect): boolean => differences(effect, one, now.at - before.at).length === 0;
    const match = candidates.find((one) => one[3] === effect[3] && same(one)) ?? candidates[0]!;
    left.splice(left.indexOf(match), 1);
    if (match[3] !== effect[3]) changed.add('record');
    for (const field of differences(effect, match, now.at - before.at)) {
      const body = isObject(call.body) ? call.body : {};
      const isNamed = Object.hasOwn(body, field);
      changed.add(isNamed && isObject(body[field]) ? 'references' : 'effects');
      if (isNamed) fields.add(field);
    }
  }
}

/** Names of the fields that differ. A moment may move with the time of the execution. */
function differences([, , , , before]: Effect, [, , , , now]: Effect, elapsedMs: number): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  return [...names].filter((field) => {
    const [a, b] = [ownValue(before, field), ownValue(now, field)];
    if (!a || !b || a[0] !== b[0] || a.length !== b.length) return true;
    return a.some((moment, i) => {
      const other = b[i];
      if (typeof moment !== 'number' || typeof other !== 'number' || moment === other) return false;
      return Math.abs(other - moment - elapsedMs) > NOW_TOLERANCE_MS;
    });
  });
}

const ownValue = (values: Readonly<Record<string, Value>>, field: string): Value | undefined =>
  Object.hasOwn(values, field) ? values[field] : undefined;
