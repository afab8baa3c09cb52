/** An analytics API for the page of dashboards that answers what a test wants to see drawn. */
import type { Page, Route } from 'playwright-core';

export const FAKE_ID = '0193d3b1-2c40-7e0a-9b7e-5f1d7a2c8e44';

const column = (key: string, label: string, fieldType = 'text', currency: string | null = null) => ({
  key,
  label,
  role: 'dimension',
  fieldType,
  currency,
});
const measure = (key: string, label: string, fieldType = 'integer', currency: string | null = null) => ({
  key,
  label,
  role: 'measure',
  fieldType,
  currency,
});
export const columns = { dimension: column, measure };

export interface FakeWidget {
  title: string;
  type: string;
  layout: { x: number; y: number; w: number; h: number };
  options?: object;
  granularity?: string;
  aggregation?: string;
  result?: FakeResult;
  /** Answered in place of a result. */
  failure?: FakeFailure;
  /** Response to a cursor. */
  pages?: Record<string, { result?: FakeResult; failure?: FakeFailure }>;
  delayMs?: number;
}

interface FakeResult {
  columns: readonly object[];
  rows: unknown[][];
  [more: string]: unknown;
}

interface FakeFailure {
  status: number;
  code: string;
  message: string;
  retryAfter?: string;
}

export interface FakeDashboard {
  name: string;
  description?: string;
  version?: string;
  state?: string;
  filters?: object[];
  /** Fields of every object. */
  catalog?: { field: string; fieldType: string; choices?: { value: string; label: string }[] }[];
  timezone?: string;
  widgets: FakeWidget[];
}

const AT = '2026-11-22T09:30:00.000Z';

const keyOf = (index: number): string => `w${index}`;

/** Answers for the analytics part of the API, within the browser. Returns the bodies of the runs. */
export async function fakeDashboards(page: Page, dashboard: FakeDashboard): Promise<{ key: string; body: unknown }[]> {
  const runs: { key: string; body: unknown }[] = [];
  const summary = {
    dashboardId: FAKE_ID,
    name: dashboard.name,
    description: dashboard.description ?? null,
    ownerId: null,
    visibility: 'shared',
    sharedWith: [],
    version: dashboard.version ?? 'published',
    state: dashboard.state ?? 'published',
    revision: 1,
    publishedRevision: 1,
    publishedAt: AT,
    publishedById: null,
    timezone: dashboard.timezone ?? null,
    capabilities: { editable: false, publishable: false, deletable: false, shareable: false },
    createdAt: AT,
    createdById: null,
    updatedAt: AT,
    updatedById: null,
  };
  const answer = (route: Route, status: number, body: object, headers: Record<string, string> = {}): Promise<void> =>
    route.fulfill({ status, contentType: 'application/json', headers, body: JSON.stringify(body) });
  await page.route('**/api/v1/analytics/catalog/*', (route) =>
    answer(route, 200, { dimensions: (dashboard.catalog ?? []).map((one) => ({ choices: null, ...one })) }),
  );
  await page.route('**/api/v1/analytics/dashboards?*', (route) =>
    answer(route, 200, {
      records: [{ ...summary, widgetCount: dashboard.widgets.length }],
      page: 1,
      pageSize: 25,
      total: 1,
      nextCursor: null,
    }),
  );
  await page.route(`**/api/v1/analytics/dashboards/${FAKE_ID}*`, (route) =>
    answer(route, 200, {
      ...summary,
      filters: dashboard.filters ?? [],
      widgets: dashboard.widgets.map((widget, index) => ({
        widgetKey: keyOf(index),
        title: widget.title,
        type: widget.type,
        layout: widget.layout,
        options: widget.options ?? {},
        query: widget.result && {
          objectApiName: 'Invoice__c',
          dimensions: widget.result.columns.flatMap((one) =>
            'role' in one && one.role === 'dimension' && 'key' in one
              ? [
                  {
                    field: String(one.key).replace(/_(?:day|week|month|quarter|year)$/, ''),
                    granularity: widget.granularity,
                  },
                ]
              : [],
          ),
          measures: widget.result.columns.flatMap((one) =>
            'role' in one && one.role === 'measure' && 'key' in one
              ? [{ key: one.key, aggregation: widget.aggregation ?? 'sum' }]
              : [],
          ),
        },
      })),
    }),
  );
  await page.route('**/api/v1/analytics/dashboards/*/widgets/*/run', async (route) => {
    const key = new URL(route.request().url()).pathname.split('/').at(-2) ?? '';
    const widget = dashboard.widgets[Number(key.slice(1))];
    const body = route.request().postDataJSON();
    runs.push({ key, body });
    if (widget?.delayMs) await new Promise((resolve) => setTimeout(resolve, widget.delayMs));
    const asked = body.cursor ? widget?.pages?.[body.cursor] : widget;
    if (asked?.failure) {
      const { status, code, message, retryAfter } = asked.failure;
      return answer(route, status, { code, message }, retryAfter ? { 'retry-after': retryAfter } : {});
    }
    const rows = asked?.result?.rows ?? [];
    return answer(route, 200, {
      dashboardId: FAKE_ID,
      widgetKey: key,
      version: 'published',
      revision: 1,
      totals: null,
      rowCount: rows.length,
      truncated: false,
      nextCursor: null,
      computedAt: AT,
      dataAsOf: AT,
      fromCache: false,
      accessNotes: [],
      durationMs: 3,
      ...asked?.result,
    });
  });
  return runs;
}
