/**
 * Runs a widget for the caller: data groups and measures the records that they can see. Source:
 * docs/reference/analytics.md#running-a-widget.
 */
import { createHash } from 'node:crypto';
import type { AggregateResult } from '../../../contracts/data/aggregate.ts';
import type { Handler } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { relatedObjectsIn } from '../../../lib/query/conditions.ts';
import { revisionShown } from '../dashboards/present.ts';
import type { FullDashboardRow } from '../dashboards/read.sql.ts';
import { visibleDashboard } from '../dashboards/read.ts';
import type { AnalyticsDeps } from '../deps.ts';
import { type Viewer, viewerOf } from '../viewer.ts';
import { type AskedWidget, type Question, questionOf, refusalOf } from './query.ts';

export const runWidget: Handler<'analytics.dashboards.widgets.run', AnalyticsDeps> = async (deps, request, call) => {
  const began = performance.now();
  const { body = {}, path } = call;
  const viewer = await viewerOf(deps, request);
  const row = await deps.database.shared('analytics', viewer.tenantId, (tx) =>
    visibleDashboard(tx, viewer, path.dashboardId, body.version ?? null),
  );
  const place = row.content.widgets.findIndex(({ widgetKey }) => widgetKey === path.widgetKey);
  const widget = row.content.widgets[place];
  if (!widget) throw new PlatformError('WIDGET_NOT_FOUND', 'The dashboard has no such widget.');
  if (!widget.query) throw withoutQuery(place);
  const asked: AskedWidget = {
    place,
    query: widget.query,
    filters: row.content.filters,
    timezone: row.timezone,
    body,
    viewerTimezone: viewer.timezone,
    ieee754Compatible: call.ieee754Compatible ?? false,
  };
  const question = questionOf(asked);
  refuseDenied(question, request, call.operationId);
  const { maxAgeSeconds = LIMITS.widget_result_age_default_s } = body;
  const key = cacheKey(viewer, request, question);
  const kept = maxAgeSeconds === 0 ? null : deps.results.find(key, maxAgeSeconds);
  const json = kept?.json ?? (await compute(deps, viewer, asked, question, key));
  return { body: replyOf(row, path.widgetKey, json, { fromCache: kept !== null, began }) };
};

/** An agent learns nothing from a widget about records that it must not read, however the widget comes by them. */
function refuseDenied({ query }: Question, { deniedObjects = [] }: RequestContext, operationId: string): void {
  if (deniedObjects.length === 0) return;
  const read = [query.objectApiName, ...relatedObjectsIn(query.filters), ...relatedObjectsIn(query.conditions)];
  if (!read.some((name) => deniedObjects.includes(name))) return;
  throw new PlatformError('AGENT_POLICY_DENIED', `An agent policy denies ${operationId} on an object that is read.`, {
    details: { operationId },
  });
}

function withoutQuery(place: number): PlatformError {
  const message = 'The widget has no query to run.';
  return new PlatformError('WIDGET_QUERY_INVALID', message, {
    errors: [violation(`/widgets/${place}/query`, 'WIDGET_QUERY_INVALID', message)],
  });
}

async function compute(
  { aggregate, results }: AnalyticsDeps,
  { tenantId }: Viewer,
  asked: AskedWidget,
  question: Question,
  key: string,
): Promise<string> {
  const computedAtMs = performance.now();
  const result = await aggregate(question.query).catch((error: unknown) => {
    throw error instanceof PlatformError ? refusalOf(error, asked, question) : error;
  });
  const json = jsonOf(result);
  results.keep(key, { tenantId, json, computedAtMs });
  return json;
}

/**
 * Names what a result depends on beside the records: who asks, by which configuration and permissions, what, and on
 * which day, for a question about today. Also through which client, since only that one can use the cursor of the
 * result; and what it must not name.
 */
function cacheKey(
  { tenantId, userId, metadataVersion, accessVersion }: Viewer,
  { clientId, deniedObjects = [] }: RequestContext,
  { query }: Question,
): string {
  const today = dayIn(query.timezone ?? 'UTC');
  const parts = [tenantId, userId, clientId, metadataVersion, accessVersion, today, query, deniedObjects];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

const dayIn = (timezone: string): string => new Intl.DateTimeFormat('en-CA', { timeZone: timezone }).format();

/** The properties of a result, without the braces: its rows are JSON already. */
function jsonOf({ rowsJson, totalsJson, columns, ...rest }: AggregateResult): string {
  return `"columns":${JSON.stringify(columns)},"rows":${rowsJson},"totals":${totalsJson},${inner(rest)}`;
}

const inner = (value: object): string => JSON.stringify(value).slice(1, -1);

function replyOf(
  row: FullDashboardRow,
  widgetKey: string,
  json: string,
  { fromCache, began }: { readonly fromCache: boolean; readonly began: number },
): Buffer {
  const { dashboardId, version } = row;
  const head = inner({ dashboardId, widgetKey, version, revision: revisionShown(row) });
  const durationMs = Math.round((performance.now() - began) * 1_000) / 1_000;
  return Buffer.from(`{${head},${json},${inner({ fromCache, durationMs })}}`);
}
