/** Dashboards and the results of their widgets. Source: docs/reference/analytics.md. */
import type { Http } from './http.ts';
import { pages } from './pages.ts';

export interface Dashboard {
  readonly dashboardId: string;
  readonly name: string;
  readonly description: string | null;
  readonly revision: number;
}

export interface Widget {
  readonly widgetKey: string;
  readonly title: string;
  readonly type: string;
}

/** docs/reference/analytics.md#running-a-widget */
export interface WidgetRun {
  readonly version?: 'draft' | 'published';
  readonly filterValues?: Readonly<Record<string, { readonly value: unknown; readonly valueTo?: unknown }>>;
  readonly timezone?: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly maxAgeSeconds?: number;
}

export interface WidgetResult {
  readonly columns: readonly {
    readonly key: string;
    readonly label: string;
    readonly role: 'dimension' | 'measure';
    readonly fieldType: string;
    readonly currency: string | null;
  }[];
  /** Values in the order of `columns`. */
  readonly rows: readonly (readonly unknown[])[];
  readonly totals: Readonly<Record<string, unknown>> | null;
  readonly rowCount: number;
  readonly nextCursor: string | null;
  /** By key of a dimension: what people call its values. */
  readonly labels: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly computedAt: string;
}

const part = encodeURIComponent;

export class Dashboards {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Dashboards that the caller sees, by name; `search` finds a part of the name or description. */
  async *list(search?: string): AsyncGenerator<Dashboard> {
    const read = async (page = '1'): Promise<{ records: readonly Dashboard[]; next: string | null }> => {
      const query = { search, page, pageSize: '100' };
      const { records, total } = (await this.#http.send('GET', '/analytics/dashboards', { query })).body;
      return { records, next: records.length > 0 && Number(page) * 100 < total ? String(Number(page) + 1) : null };
    };
    for await (const { records } of pages(read, ({ next }) => next)) yield* records;
  }

  async get(dashboardId: string): Promise<Dashboard & { readonly widgets: readonly Widget[] }> {
    return (await this.#http.send('GET', `/analytics/dashboards/${part(dashboardId)}`)).body;
  }

  /** The result of a widget, about the records that the caller sees. */
  async run(dashboardId: string, widgetKey: string, body: WidgetRun = {}): Promise<WidgetResult> {
    const path = `/analytics/dashboards/${part(dashboardId)}/widgets/${part(widgetKey)}/run`;
    return (await this.#http.send('POST', path, { body, read: true })).body;
  }
}
