/** Types of the public API that the page reads (docs/reference/analytics.md), and the global of the chart library. */
import type { Column, Granularity } from '../../shared/types.d.ts';

export interface ApiError {
  status: number;
  code: string;
  message: string;
  retryAfterSeconds: number | null;
}

export interface DashboardSummary {
  dashboardId: string;
  name: string;
  description: string | null;
  visibility: string;
  state: string;
  updatedAt: string;
  widgetCount: number;
}

export interface DashboardList {
  records: DashboardSummary[];
  page: number;
  pageSize: number;
  total: number;
}

export interface DashboardFilter {
  filterKey: string;
  label: string;
  objectApiName: string;
  field: string;
  operator: string;
  value?: unknown;
  valueTo?: unknown;
  locked: boolean;
}

/** As of a list. */
export interface Condition {
  field: string;
  operator: string;
  value?: unknown;
  valueTo?: unknown;
}

/** Value of a dimension, by the key of its column. */
export interface Group {
  key: string;
  value: unknown;
}

export interface WidgetQuery {
  objectApiName: string;
  filters?: { logic: string; conditions: Condition[] };
  dimensions: { field: string; granularity?: Granularity }[];
  measures: { key: string; aggregation: string; field?: string }[];
}

export interface Widget {
  widgetKey: string;
  title: string;
  type: string;
  layout: { x: number; y: number; w: number; h: number };
  query: WidgetQuery | null;
  options: Record<string, unknown>;
}

export interface Dashboard {
  dashboardId: string;
  name: string;
  description: string | null;
  version: string;
  state: string;
  publishedAt: string | null;
  timezone: string | null;
  filters: DashboardFilter[];
  widgets: Widget[];
}

export interface WidgetResult {
  columns: Column[];
  rows: unknown[][];
  totals: Record<string, unknown> | null;
  rowCount: number;
  truncated: boolean;
  /** null: there is no further page. */
  nextCursor: string | null;
  computedAt: string;
  dataAsOf: string;
  fromCache: boolean;
  accessNotes: { code: string; field: string | null; message: string }[];
  /** Display names of a dimension's values, by its key and the value: names of records, labels of choices. */
  labels?: Record<string, Record<string, string>>;
}

/** Writes a value of a row. */
export type Writer = (row: unknown[], index: number) => string;

export interface FilterValue {
  value: unknown;
  valueTo?: unknown;
}

export interface Choice {
  value: string;
  label: string;
}

/** Type of a filter's value. */
export interface FilterField {
  fieldType: string;
  /** Of a picklist; else null. */
  choices: Choice[] | null;
}

export interface Catalog {
  dimensions: (FilterField & { field: string })[];
}

/** The fields that filters name, by object and field; without those that are not known. */
export type FilterFields = Map<string, FilterField>;

export interface Series {
  label: string;
  /** A value for each category; null: there is none. */
  values: (number | null)[];
  column: Column;
  /** Those that tell it from other series. */
  groups: Group[];
}

export interface ChartData {
  categories: string[];
  /** That of each category; none: the chart has no dimension. */
  groups: Group[];
  series: Series[];
}

declare global {
  const Chart: typeof import('chart.js').Chart;
}
