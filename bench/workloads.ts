/** Requests of each workload to the limit server and the platform, with checks of the answer. */

import { randomUUID } from 'node:crypto';
import { INVOICES, rowId } from './dataset.ts';
import { type LoadRequest, numbered } from './load.ts';

export const WORKLOADS: Record<string, string> = {
  W1: 'list 50 invoices, ordered by id',
  W2: 'list 200 invoices',
  W3: 'filter on 3 conditions, sort on 2 fields, 50 rows',
  W4: 'get one invoice by id',
  W7: 'sum and count of 200,000 invoices by status: a widget of a dashboard, never from its cache',
  W8K: '50 invoices from the middle, by key',
  W9: 'list 50 with the total of all',
  W6: 'update one field of one invoice',
  W5: 'create one invoice',
};

export interface Target {
  name: string;
  baseUrl: string;
  /** Roots of the process trees whose CPU time is the target's. */
  pids: number[];
  requests: Record<string, LoadRequest[]>;
  /** Throws when the answer is not what every target must answer. */
  check(workload: string, body: never): void;
}

/** At the end of the invoices: rows that updates change and no get reads. */
const WRITTEN = 10_000;
const readRows = (invoices: number): number[] =>
  Array.from({ length: 1000 }, (_, k) => 1 + ((k * 7919 * 13) % (invoices - WRITTEN)));
const writeRows = (invoices: number): number[] =>
  Array.from({ length: 9_000 }, (_, k) => invoices - WRITTEN + 1 + ((k * 37) % 9_000));
/** The platform refuses blind writes: any of these versions may be current, since every row is written a few times. */
const ETAGS = Array.from({ length: 10 }, (_, k) => `"${(k + 1).toString(36)}"`).join(', ');
const JSON_HEADERS = { 'content-type': 'application/json' };
const NOTES = 'Created by the benchmark, request __N__, checked by the back office and filed.';

function expect(condition: boolean, workload: string, body: unknown): void {
  if (!condition) throw new Error(`${workload}: wrong answer ${JSON.stringify(body).slice(0, 300)}`);
}

type Row = Record<string, unknown>;

function checkRows(workload: string, rows: Row[], name: string, amount: string, total?: number): void {
  const numbers: Record<string, string> = {
    W1: 'INV-00000001',
    W2: 'INV-00000001',
    W8K: 'INV-00100001',
    W9: 'INV-00000001',
  };
  expect(rows.length === (workload === 'W2' ? 200 : 50) && Object.keys(rows[0] ?? {}).length === 15, workload, rows[0]);
  if (numbers[workload]) expect(rows[0]?.[name] === numbers[workload], workload, rows[0]);
  if (workload === 'W3')
    expect(
      rows.every((r, k) => k === 0 || Number(rows[k - 1]?.[amount]) >= Number(r[amount])) &&
        Number(rows[49]?.[amount]) >= 5000,
      workload,
      rows[0],
    );
  if (workload === 'W9') expect(total !== undefined && total >= INVOICES && total < INVOICES * 2, workload, { total });
}

/** Of the data set: statuses, and the sum of all amounts. */
const STATUSES = 6;
const AMOUNT = 1_000_100_958.72;

interface Group {
  sum: number;
  count: number;
}

/** The groups of a widget's rows. */
const groupsOf = ({ rows }: Row): Group[] =>
  (rows as [string, number, number][]).map(([, sum, count]) => ({ sum, count }));

/** By status, how many invoices there are and what they amount to. */
function checkGroups(workload: string, groups: readonly Group[]): void {
  const total = (pick: (group: Group) => number): number => groups.reduce((sum, group) => sum + Number(pick(group)), 0);
  const sum = total((group) => group.sum);
  expect(groups.length === STATUSES && total((group) => group.count) >= INVOICES, workload, groups);
  expect(Math.abs(sum - AMOUNT) < AMOUNT / 100, workload, { sum });
}

export function limitTarget(baseUrl: string, pid: number): Target {
  const list = (name: string): LoadRequest[] => [{ path: `/${name}` }];
  const invoice = {
    number: 'INV-N__N__',
    account_id: 4711,
    status: 'draft',
    currency: 'EUR',
    amount: 1234.5,
    tax: 234.56,
    is_paid: false,
    issue_date: '2026-01-15',
    due_date: '2026-02-14',
    region: 'north',
    notes: NOTES,
    owner_id: 'user-1',
    visibility: 'team',
  };
  return {
    name: 'limit',
    baseUrl,
    pids: [pid],
    requests: {
      ...Object.fromEntries(['W1', 'W2', 'W3', 'W7', 'W8K', 'W9'].map((name) => [name, list(name)])),
      W4: readRows(INVOICES).map((i) => ({ path: `/W4/${i}` })),
      W5: [{ method: 'POST', path: '/W5', headers: JSON_HEADERS, body: JSON.stringify(invoice) }],
      W6: writeRows(INVOICES).map((i) => ({
        method: 'PATCH',
        path: `/W6/${i}`,
        headers: JSON_HEADERS,
        body: '{"notes":"changed __N__"}',
      })),
    },
    check(workload, body: never) {
      const b = body as { records?: Row[]; total?: number } & Row;
      if (workload === 'W4') expect(typeof b['number'] === 'string', workload, b);
      else if (workload === 'W5') expect(b['account_id'] === 4711, workload, b);
      else if (workload === 'W6') expect(String(b['notes']).startsWith('changed'), workload, b);
      else if (workload === 'W7') checkGroups(workload, body);
      else checkRows(workload, workload === 'W9' ? (b.records ?? []) : body, 'number', 'amount', b.total);
    },
  };
}

const DASHBOARD = {
  name: 'Invoices',
  widgets: [
    {
      widgetKey: 'by-status',
      title: 'Invoices by status',
      type: 'bar',
      layout: { x: 0, y: 0, w: 12, h: 4 },
      query: {
        objectApiName: 'BenchInvoice__c',
        dimensions: [{ field: 'Status__c' }],
        measures: [
          { key: 'sum', aggregation: 'sum', field: 'Amount__c' },
          { key: 'count', aggregation: 'count' },
        ],
      },
    },
  ],
};

/** The path on which the widget of a new dashboard runs; null: this version has no dashboards yet. */
async function widgetPath(baseUrl: string, headers: Record<string, string>): Promise<string | null> {
  const response = await fetch(`${baseUrl}/api/v1/analytics/dashboards`, {
    method: 'POST',
    headers: { ...headers, ...JSON_HEADERS, 'idempotency-key': randomUUID() },
    body: JSON.stringify(DASHBOARD),
  });
  if (response.status === 404) return null;
  const { dashboardId } = (await response.json()) as { dashboardId: string };
  if (!response.ok) throw new Error(`creating a dashboard: ${response.status}`);
  return `/api/v1/analytics/dashboards/${dashboardId}/widgets/by-status/run`;
}

const INVOICES_PATH = '/api/v1/data/BenchInvoice__c';
const FIELDS =
  'id,name,Account__c,Status__c,CurrencyCode__c,Amount__c,Tax__c,IsPaid__c,IssueDate__c,DueDate__c,Region__c,Notes__c,ownerId,Visibility__c,createdAt';

/** The cursor behind record 100,000: a client that walks the list gets there page by page. */
async function cursorOfTheMiddle(baseUrl: string, headers: Record<string, string>): Promise<string> {
  const parameters: Record<string, string> = {
    fields: FIELDS,
    take: '50',
    sort: JSON.stringify([{ id: 'id', desc: false }]),
  };
  let next: Record<string, string> = { skip: '9950' };
  for (let position = 10_000; ; position += 50) {
    const response = await fetch(`${baseUrl}${INVOICES_PATH}?${new URLSearchParams({ ...parameters, ...next })}`, {
      headers,
    });
    const page = (await response.json()) as { nextCursor: string };
    if (!response.ok) throw new Error(`walking to the middle: ${response.status} ${JSON.stringify(page)}`);
    if (position === 100_000) return page.nextCursor;
    next = { cursor: page.nextCursor };
  }
}

/** `workloads`: those that will be measured; some need preparation. `invoices`: how many the tenant has. */
export async function platformTarget(
  name: string,
  baseUrl: string,
  pids: number[],
  token: string,
  workloads: readonly string[],
  invoices = INVOICES,
): Promise<Target> {
  const headers = { authorization: `Bearer ${token}` };
  const path = INVOICES_PATH;
  const widget = workloads.includes('W7') ? await widgetPath(baseUrl, headers) : null;
  const deepCursor = workloads.includes('W8K') ? await cursorOfTheMiddle(baseUrl, headers) : '';
  const list = (parameters: Record<string, unknown>): LoadRequest[] => [
    {
      path: `${path}?${new URLSearchParams({ fields: FIELDS, ...Object.fromEntries(Object.entries(parameters).map(([k, v]) => [k, typeof v === 'string' ? v : JSON.stringify(v)])) })}`,
      headers,
    },
  ];
  const byId = [{ id: 'id', desc: false }];
  const condition = (id: string, field: string, operator: string, value: unknown) => ({ id, field, operator, value });
  const invoice = {
    name: 'INV-N__N__',
    Account__c: rowId(4711),
    Status__c: 'draft',
    CurrencyCode__c: 'EUR',
    Amount__c: 1234.5,
    Tax__c: 234.56,
    IsPaid__c: false,
    IssueDate__c: '2026-01-15',
    DueDate__c: '2026-02-14',
    Region__c: 'north',
    Notes__c: NOTES,
    Visibility__c: 'team',
  };
  return {
    name,
    baseUrl,
    pids,
    requests: {
      W1: list({ take: 50, sort: byId }),
      W2: list({ take: 200, sort: byId }),
      W3: list({
        take: 50,
        filters: {
          logic: 'and',
          conditions: [
            condition('a', 'Status__c', 'eq', 'overdue'),
            condition('b', 'Amount__c', 'gte', 5000),
            condition('c', 'IssueDate__c', 'gte', '2025-01-01'),
          ],
        },
        sort: [
          { id: 'Amount__c', desc: true },
          { id: 'IssueDate__c', desc: true },
        ],
      }),
      W4: readRows(invoices).map((i) => ({ path: `${path}/${rowId(i)}?fields=${FIELDS}`, headers })),
      W7:
        widget === null
          ? []
          : [
              {
                method: 'POST',
                path: widget,
                headers: { ...headers, ...JSON_HEADERS },
                body: '{"maxAgeSeconds":0}',
              },
            ],
      W8K: list({ take: 50, sort: byId, cursor: deepCursor }),
      W9: list({ take: 50, sort: byId, includeTotal: true }),
      W5: [
        {
          method: 'POST',
          path,
          headers: { ...headers, ...JSON_HEADERS, 'idempotency-key': 'bench-create-__N__' },
          body: JSON.stringify(invoice),
        },
      ],
      W6: writeRows(invoices).map((i) => ({
        method: 'PATCH',
        path: `${path}/${rowId(i)}`,
        headers: { ...headers, ...JSON_HEADERS, 'idempotency-key': 'bench-update-__N__', 'if-match': ETAGS },
        body: '{"Notes__c":"changed __N__"}',
      })),
    },
    check(workload, body: never) {
      const b = body as { records?: Row[]; total?: number } & Row;
      if (workload === 'W4') expect(typeof b['name'] === 'string' && Object.keys(b).length === 15, workload, b);
      else if (workload === 'W5') expect(b['Account__c'] === rowId(4711), workload, b);
      else if (workload === 'W7') checkGroups(workload, groupsOf(b));
      else if (workload === 'W6') expect(String(b['Notes__c']).startsWith('changed'), workload, b);
      else checkRows(workload, b.records ?? [], 'name', 'Amount__c', b.total);
    },
  };
}

/** Sends the first request of a workload and checks the answer; throws when it is not what every target must answer. */
export async function verify(target: Target, workload: string): Promise<void> {
  const [request] = target.requests[workload] ?? [];
  if (!request) throw new Error(`${target.name} has no requests of ${workload}.`);
  const { method, path, headers, body = null } = numbered(request, Date.now());
  const response = await fetch(target.baseUrl + path, { method, headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${target.name} ${workload}: HTTP ${response.status} ${text.slice(0, 300)}`);
  target.check(workload, JSON.parse(text) as never);
}
