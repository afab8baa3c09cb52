/** Records in groups, as a service asks for them for a user. Source: docs/reference/aggregation.md. */

import type {
  AccessNote,
  AggregateColumn,
  AggregateQuery,
  AggregateResult,
} from '../../../contracts/data/aggregate.ts';
import type { Predicate } from '../../../lib/access/predicate.ts';
import { reach } from '../../../lib/access/sharing.ts';
import type { Access } from '../../../lib/access/types.ts';
import { type Asker, tenantSchema } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { planAggregate } from '../../../lib/query/aggregate.ts';
import {
  type AggregateRow,
  compileAggregate,
  dimensionType,
  measureType,
  type NamedObject,
  orderOf,
} from '../../../lib/query/aggregate-sql.ts';
import { constrainGroups } from '../../../lib/query/constrain.ts';
import { CURSOR_MESSAGES, cursorError } from '../../../lib/query/cursor.ts';
import { type ListIdentity, openListCursor, sealListCursor } from '../../../lib/query/list-cursor.ts';
import type { AggregatePlan, Constrained, Dimension, Measure } from '../../../lib/query/types.ts';
import { isReference } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { type Seal, sealFor } from '../../../lib/values/sealed.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { sqlState } from '../../../mixins/database/database.ts';
import { visibleObject } from '../object-access.ts';
import { assertFresh } from '../tenants.ts';
import { timezoneOf, type View } from '../view.ts';
import type { ReadDeps } from './read.ts';
import { namingField } from './readable.ts';

/** Answers a user's query; never tells more than a list of the same records. */
export function aggregateRecords(
  deps: ReadDeps,
  asker: Asker,
  { query }: { readonly query: AggregateQuery },
): Promise<AggregateResult> {
  const { tenantId, userId } = asker;
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const { access, snapshot } = view;
    const now = platformTime();
    const object = visibleObject(view, query.objectApiName);
    const planned = planAggregate({ ...query }, object, { access, snapshot, now, timezone: timezoneOf(view) });
    const seal = sealFor(asker, deps.sealingKeys, now);
    const identity = identityOf(query, planned);
    const plan = constrainGroups({ ...planned, after: positionIn(query.cursor ?? null, identity, seal) }, access);
    const compiled = compileAggregate(plan, {
      schema: tenantSchema(tenantId),
      maxBytes: LIMITS.page_max_bytes,
      named: new Map(plan.dimensions.map((dimension) => [dimension.key, namedBy(dimension, access, asker)])),
    });
    const { aggregates } = deps;
    aggregates.running++;
    const found = await deps.database
      .tenantTransaction(tenantId, (tx) => {
        void tx.query(aggregates.running === 1 ? WITH_WORKERS : IN_ONE_PROCESS);
        return tx.one<AggregateRow>(compiled);
      })
      .catch(tooLarge)
      .finally(() => aggregates.running--);
    assertFresh(view, found.metadataVersion, found.accessVersion);
    return resultOf(plan, found, view, found.more ? nextPage(found, identity, seal) : null);
  });
}

/**
 * Beside others a query takes one processor of the database and no more: how many a tenant takes at a time is decided
 * by its connections, and a page of widgets asks for all of them at once. Workers would also read the catalog anew for
 * each query.
 */
const IN_ONE_PROCESS = 'SET LOCAL max_parallel_workers_per_gather = 0';
/** The only one of a process may take three processors, which would be idle otherwise. */
const WITH_WORKERS = 'SET LOCAL max_parallel_workers_per_gather = 2';

/** A sum that its type cannot hold: of durations, of which a month, a day and an hour are counted apart. */
function tooLarge(error: unknown): never {
  if (!sqlState(error)?.startsWith('22')) throw error;
  throw new PlatformError('WIDGET_QUERY_INVALID', 'A value of the query is out of range, or a sum of it would be.', {
    cause: error,
  });
}

/** Parts that must stay the same from page to page; `order`: a deployment may have changed a field meanwhile. */
function identityOf(query: AggregateQuery, plan: AggregatePlan): ListIdentity {
  const { cursor: _, ...parameters } = query;
  return {
    name: 'data.records.aggregate',
    parameters: { ...parameters, timezone: plan.timezone, limit: plan.limit, order: orderOf(plan) },
  };
}

/** A list cursor holds texts; values of a group can be null. */
const nextPage = ({ lastKeys }: AggregateRow, identity: ListIdentity, seal: Seal): string =>
  sealListCursor(identity, [JSON.stringify(lastKeys)], seal);

function positionIn(cursor: string | null, identity: ListIdentity, seal: Seal): AggregatePlan['after'] {
  if (cursor === null) return null;
  const [keys] = openListCursor(identity, cursor, seal, '/cursor');
  if (keys === undefined) throw cursorError('CURSOR_INVALID', CURSOR_MESSAGES.invalid, '/cursor');
  return JSON.parse(keys);
}

/** The objects whose records a dimension shows, with the field that names them, as far as the caller reads them. */
function namedBy({ field }: Dimension, access: Access, { deniedObjects = [] }: Asker): readonly NamedObject[] {
  if (!isReference(field)) return [];
  return field.referenceTo.flatMap((apiName): NamedObject[] => {
    if (deniedObjects.includes(apiName)) return [];
    const target = Object.hasOwn(access.objects, apiName) ? access.objects[apiName] : undefined;
    if (!target) return [];
    const name = namingField(target);
    return name ? [{ object: target.object, name, sharing: reach(access, apiName, 'read') }] : [];
  });
}

function resultOf(
  plan: Constrained<AggregatePlan>,
  found: AggregateRow,
  { snapshot }: View,
  nextCursor: string | null,
): AggregateResult {
  const { dimensions, currencies, measures } = plan;
  const apart = currencies.filter(({ apiName }) => (found.currencies[apiName]?.count ?? 0) > 1);
  const columns: AggregateColumn[] = [
    ...dimensions.map((dimension) => ({
      key: dimension.key,
      label: dimension.field.label,
      role: 'dimension' as const,
      fieldType: dimensionType(dimension),
      currency: null,
    })),
    ...apart.map((field) => ({
      key: field.apiName,
      label: field.label,
      role: 'dimension' as const,
      fieldType: dimensionType({ key: field.apiName, field, granularity: null }),
      currency: null,
    })),
    ...measures.map((measure) => ({
      key: measure.key,
      label: labelOf(measure),
      role: 'measure' as const,
      fieldType: measureType(measure),
      currency: currencyOf(measure, found, snapshot.tenant.currency),
      ...currencyKeyOf(measure, found),
    })),
  ];
  // Without dimensions there is one row, also when the records of no currency are there to be added up.
  const isEmptyTotal = found.rowCount === 0 && dimensions.length === 0;
  return {
    columns,
    rowsJson: isEmptyTotal ? JSON.stringify([measures.map(emptyValue)]) : found.rows,
    totalsJson: found.totals,
    rowCount: isEmptyTotal ? 1 : found.rowCount,
    truncated: found.more,
    nextCursor,
    computedAt: formatTimestamp(platformTime()),
    dataAsOf: found.dataAsOf,
    accessNotes: notesOf(plan),
    labels: labelsOf(dimensions, found.labels),
  };
}

const emptyValue = ({ aggregation, hidden }: Measure): number | null =>
  !hidden && (aggregation === 'count' || aggregation === 'countDistinct') ? 0 : null;

function currencyOf({ isAmount, currency }: Measure, { currencies }: AggregateRow, ofTenant: string): string | null {
  if (!isAmount) return null;
  if (currency === null) return ofTenant;
  const found = currencies[currency.apiName];
  return found?.count === 1 ? found.code : null;
}

/**
 * The dimension that tells the currencies of a measure apart has the apiName of the field as its key, asked for or not.
 */
const currencyKeyOf = (
  { isAmount, currency }: Measure,
  { currencies }: AggregateRow,
): Pick<AggregateColumn, 'currencyKey'> =>
  isAmount && currency && (currencies[currency.apiName]?.count ?? 0) > 1 ? { currencyKey: currency.apiName } : {};

const LABELS: Readonly<Record<Measure['aggregation'], string>> = {
  count: 'Count of',
  countDistinct: 'Distinct values of',
  sum: 'Sum of',
  avg: 'Average of',
  min: 'Minimum of',
  max: 'Maximum of',
};

/** Of a hidden field the name that was asked for: its label is hidden, too. */
const labelOf = ({ aggregation, field, named }: Measure): string =>
  named === null ? 'Count' : `${LABELS[aggregation]} ${field?.label ?? named}`;

/** Display names of values: names of referenced records, labels of choices. */
const labelsOf = (dimensions: readonly Dimension[], names: AggregateRow['labels']): AggregateResult['labels'] =>
  Object.fromEntries(
    dimensions.flatMap(({ key, field, granularity }) => {
      const labels = names[key] ?? (granularity === null ? choicesOf(field) : null);
      return labels ? [[key, labels]] : [];
    }),
  );

const choicesOf = ({ picklistValues }: FieldMeta): Record<string, string> | null =>
  picklistValues && Object.fromEntries(picklistValues.map(({ value, label }) => [value, label]));

/**
 * The same note for what does not exist and for what is hidden: it repeats the name that was asked for, and no more.
 */
function notesOf({ measures, sharing, filter }: Constrained<AggregatePlan>): readonly AccessNote[] {
  const hidden = new Set(measures.flatMap(({ hidden, named }) => (hidden && named !== null ? [named] : [])));
  const notes = [...hidden].map(
    (field): AccessNote => ({
      code: 'FIELD_HIDDEN',
      field,
      message: 'The field does not exist, or you cannot read it or the currency of its amounts. It has no values here.',
    }),
  );
  if (sharing !== null || (filter !== null && isRestricted(filter)))
    notes.push({ code: 'ROWS_RESTRICTED', field: null, message: 'Only records that you have access to are counted.' });
  return notes;
}

/** Related records are looked for among those that the caller reaches, which are not all. */
function isRestricted(node: Predicate): boolean {
  if (node.kind === 'and' || node.kind === 'or') return node.nodes.some(isRestricted);
  return node.kind === 'related' && node.sharing !== null;
}
