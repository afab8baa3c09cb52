/** Public operations of analytics: dashboards and the results of their widgets. */
import { type Static, Type } from 'typebox';
import { PRINCIPAL_TYPES } from '../lib/access/sharing.ts';
import type { Asker } from '../lib/context.ts';
import type { PlatformErrorWire } from '../lib/errors/platform-error.ts';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import { GRANULARITIES } from '../lib/query/types.ts';
import { AGGREGATIONS } from '../lib/schema/field-types/types.ts';
import { TRIED } from './data/mutations.ts';
import { Aggregation, ConditionSchema, FieldTypeSchema, FiltersSchema, Operator } from './data/query.ts';
import { acceptLanguage, contentLanguage, KEY_ERRORS, objectApiName } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { ANALYTICS_GUIDANCE } from './guidance/analytics.ts';

export interface AnalyticsActions extends ActionsOf<typeof ANALYTICS_OPERATIONS> {
  /**
   * Checks whether `asker` could change dashboards by an operation, at any revision: the reason why not, else
   * null. The body is that of the operation.
   */
  'analytics.access.check': {
    params: { asker: Asker; operationId: string; dashboardId: string | null; body: unknown };
    result: { refusal: PlatformErrorWire | null };
  };
}

const closed = { additionalProperties: false };
const uuid = (description?: string) => Type.String({ format: 'uuid', ...(description ? { description } : {}) });
const timestamp = (description?: string) =>
  Type.String({ format: 'date-time', ...(description ? { description } : {}) });

export const VISIBILITIES = ['private', 'shared', 'public'] as const;
export const DASHBOARD_VERSIONS = ['draft', 'published'] as const;
export const WIDGET_TYPES = ['metric', 'table', 'bar', 'line', 'area', 'pie', 'funnel', 'pivot', 'text'] as const;
/** Names of widgets within their dashboard. */
export const WIDGET_KEY_PATTERN = '^[a-z][a-z0-9_-]{0,63}$';
/** Bounds of the parts of a dashboard, for requests and deployments alike. */
export const DASHBOARD_BOUNDS = {
  nameChars: 120,
  descriptionChars: 2_000,
  timezoneChars: 64,
  filterLabelChars: 255,
  titleChars: 200,
  columnKeyChars: 160,
  options: 50,
  gridColumns: 12,
  gridRows: 1_000,
  widgetRows: 100,
} as const;
/** Names of filters and measures. */
export const KEY_PATTERN = '^[A-Za-z][A-Za-z0-9_-]{0,63}$';

const Visibility = Type.Enum([...VISIBILITIES], {
  title: 'DashboardVisibility',
  description: 'Users besides the owner who can see it: none (private, the default), those it is shared with, or all.',
});
const Version = Type.Enum([...DASHBOARD_VERSIONS], { title: 'DashboardVersion' });
const DateGranularity = Type.Enum([...GRANULARITIES], { title: 'DateGranularity' });
const ApiName = Type.String({ minLength: 1, maxLength: 80 });
const Revision = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });

const Share = Type.Object(
  {
    principalType: Type.Enum([...PRINCIPAL_TYPES], { title: 'PrincipalType' }),
    principalId: Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Id of the user, or apiName of the role or group.',
    }),
    access: Type.Enum(['view', 'edit']),
  },
  { ...closed, title: 'DashboardShare' },
);

const filterFields = {
  filterKey: Type.String({ pattern: KEY_PATTERN, description: 'Names the filter in `filterValues` of a run.' }),
  label: Type.String({ minLength: 1, maxLength: DASHBOARD_BOUNDS.filterLabelChars }),
  objectApiName: ApiName,
  field: ApiName,
  operator: Operator,
  value: Type.Optional(Type.Unknown({ description: 'Absent: the filter applies only to runs that give one.' })),
  valueTo: Type.Optional(Type.Unknown({ description: 'Upper end of `between`.' })),
};

const GivenFilter = Type.Object(
  {
    ...filterFields,
    locked: Type.Optional(Type.Boolean({ description: 'No run can give another value; default: false.' })),
  },
  { title: 'DashboardFilterInput', ...closed, description: 'A condition on all widgets of the object.' },
);

const DashboardFilter = Type.Object({ ...filterFields, locked: Type.Boolean() }, { title: 'DashboardFilter' });

const Dimensions = Type.Array(
  Type.Object({ field: ApiName, granularity: Type.Optional(DateGranularity) }, { ...closed, title: 'WidgetDimension' }),
  { title: 'WidgetDimensions', maxItems: LIMITS.widget_dimensions_max, description: 'None: one row for all records.' },
);

const queryFields = {
  objectApiName: ApiName,
  measures: Type.Array(
    Type.Object(
      {
        key: Type.String({ pattern: KEY_PATTERN, description: 'Key of the column.' }),
        aggregation: Aggregation,
        field: Type.Optional(ApiName),
      },
      { ...closed, title: 'WidgetMeasure' },
    ),
    { minItems: 1, maxItems: LIMITS.widget_measures_max },
  ),
  filters: Type.Optional(FiltersSchema),
  sort: Type.Optional(
    Type.Array(
      Type.Object(
        {
          id: Type.String({
            minLength: 1,
            maxLength: DASHBOARD_BOUNDS.columnKeyChars,
            description: 'Key of a column.',
          }),
          desc: Type.Optional(Type.Boolean()),
        },
        { ...closed, title: 'WidgetSort' },
      ),
      { maxItems: LIMITS.sort_max },
    ),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.widget_rows_max })),
};
const aboutQuery = { ...closed, description: 'Groups and measures of the records that the caller can see.' };

const GivenQuery = Type.Object(
  { ...queryFields, dimensions: Type.Optional(Dimensions) },
  { ...aboutQuery, title: 'WidgetQueryInput' },
);

const WidgetQuery = Type.Object({ ...queryFields, dimensions: Dimensions }, { ...aboutQuery, title: 'WidgetQuery' });

const widgetFields = {
  widgetKey: Type.String({ pattern: WIDGET_KEY_PATTERN }),
  title: Type.String({ maxLength: DASHBOARD_BOUNDS.titleChars }),
  type: Type.Enum([...WIDGET_TYPES], { title: 'WidgetType' }),
  layout: Type.Object(
    {
      x: Type.Integer({ minimum: 0, maximum: DASHBOARD_BOUNDS.gridColumns - 1 }),
      y: Type.Integer({ minimum: 0, maximum: DASHBOARD_BOUNDS.gridRows }),
      w: Type.Integer({ minimum: 1, maximum: DASHBOARD_BOUNDS.gridColumns }),
      h: Type.Integer({ minimum: 1, maximum: DASHBOARD_BOUNDS.widgetRows }),
    },
    { title: 'WidgetLayout', ...closed, description: 'Place on a grid of 12 columns.' },
  ),
};
const Options = Type.Object(
  {},
  {
    title: 'WidgetOptions',
    additionalProperties: true,
    maxProperties: DASHBOARD_BOUNDS.options,
    description: 'How it is drawn.',
  },
);

const GivenWidget = Type.Object(
  {
    ...widgetFields,
    query: Type.Optional(nullable(GivenQuery)),
    options: Type.Optional(Options),
  },
  { ...closed, title: 'DashboardWidgetInput' },
);

const Widget = Type.Object(
  { ...widgetFields, query: nullable(WidgetQuery), options: Options },
  { title: 'DashboardWidget' },
);

const summaryFields = {
  dashboardId: uuid(),
  name: Type.String(),
  description: nullable(Type.String()),
  ownerId: nullable(uuid('null: the platform, with a template.')),
  visibility: Visibility,
  sharedWith: Type.Array(Share, {
    description: 'All shares for those who may edit; for others those that let them in.',
  }),
  version: Version,
  state: Type.Enum(['draft', 'published', 'modified'], {
    title: 'DashboardState',
    description: '`modified`: changed since it was published.',
  }),
  revision: Revision,
  publishedRevision: nullable(Revision),
  publishedAt: nullable(timestamp()),
  publishedById: nullable(uuid()),
  timezone: nullable(Type.String({ description: 'null: that of who looks.' })),
  capabilities: Type.Object(
    {
      editable: Type.Boolean(),
      publishable: Type.Boolean(),
      deletable: Type.Boolean(),
      shareable: Type.Boolean(),
    },
    { title: 'DashboardCapabilities' },
  ),
  createdAt: timestamp(),
  createdById: nullable(uuid()),
  updatedAt: timestamp(),
  updatedById: nullable(uuid()),
};

const Dashboard = Type.Object(
  {
    ...summaryFields,
    filters: Type.Array(DashboardFilter),
    widgets: Type.Array(Widget),
  },
  { title: 'Dashboard' },
);

export type DashboardFilter = Static<typeof DashboardFilter>;
export type DashboardShare = Static<typeof Share>;
export type Widget = Static<typeof Widget>;
export type WidgetQuery = Static<typeof WidgetQuery>;
export type GivenWidget = Static<typeof GivenWidget>;

const contentFields = {
  description: Type.Optional(nullable(Type.String({ maxLength: DASHBOARD_BOUNDS.descriptionChars }))),
  visibility: Type.Optional(Visibility),
  sharedWith: Type.Optional(Type.Array(Share, { maxItems: LIMITS.dashboard_shares_max })),
  timezone: Type.Optional(
    nullable(
      Type.String({ maxLength: DASHBOARD_BOUNDS.timezoneChars, description: 'IANA name; null: that of who looks.' }),
    ),
  ),
  filters: Type.Optional(Type.Array(GivenFilter, { maxItems: LIMITS.dashboard_filters_max })),
  widgets: Type.Optional(Type.Array(GivenWidget, { maxItems: LIMITS.dashboard_widgets_max })),
};
const Name = Type.String({ minLength: 1, maxLength: DASHBOARD_BOUNDS.nameChars });
const expectedRevision = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 2_147_483_647,
    description: 'Revision that was read; or X-Expected-Revision or If-Match in its place.',
  }),
);

export const CreateBody = Type.Object({ name: Name, ...contentFields }, { ...closed, title: 'DashboardInput' });
export const UpdateBody = Type.Object(
  { name: Type.Optional(Name), ...contentFields, expectedRevision },
  { ...closed, title: 'DashboardChanges' },
);
const PublishBody = Type.Object(
  {
    expectedRevision,
    comment: Type.Optional(Type.String({ maxLength: LIMITS.comment_max_chars, description: 'For the audit trail.' })),
  },
  { ...closed, title: 'DashboardPublication' },
);

export type CreateBody = Static<typeof CreateBody>;
export type UpdateBody = Static<typeof UpdateBody>;

const RunBody = Type.Object(
  {
    version: Type.Optional(Version),
    filterValues: Type.Optional(
      Type.Record(
        Type.String({ maxLength: 64 }),
        Type.Object({ value: Type.Unknown(), valueTo: Type.Optional(Type.Unknown()) }, closed),
        { maxProperties: LIMITS.dashboard_filters_max, description: 'Values of the filters of the dashboard, by key.' },
      ),
    ),
    conditions: Type.Optional(
      Type.Array(
        Type.Object({ ...ConditionSchema.properties, id: Type.Optional(ConditionSchema.properties.id) }, closed),
        {
          maxItems: LIMITS.filter_conditions_max,
          description: 'Further conditions, all of which must hold.',
        },
      ),
    ),
    timezone: Type.Optional(
      Type.String({
        maxLength: DASHBOARD_BOUNDS.timezoneChars,
        description: 'IANA name of the zone in which days begin.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.widget_rows_max })),
    cursor: Type.Optional(
      Type.String({ maxLength: LIMITS.uri_max_bytes, description: 'nextCursor of the page before.' }),
    ),
    maxAgeSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.widget_result_age_max_s,
        description: `How old a kept result may be; 0: it is computed now; default: ${LIMITS.widget_result_age_default_s}.`,
      }),
    ),
  },
  { ...closed, title: 'WidgetRun' },
);

export type RunBody = Static<typeof RunBody>;

const resultFields = {
  columns: Type.Array(
    Type.Object({
      key: Type.String(),
      label: Type.String(),
      role: Type.Enum(['dimension', 'measure']),
      fieldType: FieldTypeSchema,
      currency: nullable(Type.String({ description: 'ISO 4217 code of all values of the column.' })),
      currencyKey: Type.Optional(
        Type.String({ description: 'Of amounts of several currencies: key of the column with that of each.' }),
      ),
    }),
  ),
  rows: Type.Array(Type.Array(Type.Unknown()), { description: 'Values in the order of `columns`.' }),
  totals: nullable(
    Type.Object({}, { additionalProperties: true, description: 'By key of the measure, over all groups.' }),
  ),
  rowCount: Type.Integer({ minimum: 0, description: 'Rows of all pages.' }),
  truncated: Type.Boolean({ description: 'There are more rows than these.' }),
  nextCursor: nullable(Type.String({ description: 'null marks the last page.' })),
  computedAt: timestamp(),
  dataAsOf: timestamp('The records as they were then.'),
  accessNotes: Type.Array(
    Type.Object({
      code: Type.Enum(['FIELD_HIDDEN', 'ROWS_RESTRICTED']),
      field: nullable(Type.String()),
      message: Type.String(),
    }),
  ),
};

const WidgetResult = Type.Object(
  {
    dashboardId: uuid(),
    widgetKey: Type.String(),
    version: Version,
    revision: Revision,
    ...resultFields,
    labels: Type.Record(Type.String(), Type.Record(Type.String(), Type.String()), {
      description: 'By key of a dimension: what people call its values, such as names of records.',
    }),
    fromCache: Type.Boolean({ description: 'A kept result, computed at `computedAt`.' }),
    durationMs: Type.Number({ minimum: 0, description: 'Milliseconds that this run took.' }),
  },
  { title: 'WidgetResult' },
);

const Catalog = Type.Object(
  {
    objectApiName: Type.String(),
    label: Type.String(),
    dimensions: Type.Array(
      Type.Object({
        field: Type.String(),
        label: Type.String(),
        fieldType: FieldTypeSchema,
        granularities: Type.Array(DateGranularity),
        choices: nullable(
          Type.Array(Type.Object({ value: Type.String(), label: Type.String() }), {
            description: 'Values of a picklist in its order, also those that records no longer take; else null.',
          }),
        ),
        filterOperators: Type.Array(Operator),
      }),
    ),
    measures: Type.Array(
      Type.Object({
        field: Type.String(),
        label: Type.String(),
        fieldType: FieldTypeSchema,
        aggregations: Type.Array(Aggregation),
        semantics: nullable(Type.String({ description: 'Meaning of the values.' })),
      }),
    ),
    relationships: Type.Array(Type.Object({ relationshipName: Type.String(), objectApiName: Type.String() })),
    limits: Type.Object({
      maxDimensions: Type.Integer(),
      maxMeasures: Type.Integer(),
      maxRows: Type.Integer(),
    }),
  },
  { title: 'AnalyticsCatalog' },
);

const EXAMPLE_CATALOG = {
  objectApiName: 'Invoice__c',
  label: 'Invoice',
  dimensions: [
    {
      field: 'IssueDate__c',
      label: 'Issue date',
      fieldType: 'date',
      granularities: [...GRANULARITIES],
      choices: null,
      filterOperators: ['eq', 'between'],
    },
  ],
  measures: [
    {
      field: 'Amount__c',
      label: 'Amount',
      fieldType: 'currency',
      aggregations: [...AGGREGATIONS],
      semantics: null,
    },
  ],
  relationships: [{ relationshipName: 'InvoiceLines__r', objectApiName: 'InvoiceLine__c' }],
  limits: { maxDimensions: 3, maxMeasures: 10, maxRows: 2000 },
};

const EXAMPLE_ID = '0193d3b1-2c40-7e0a-9b7e-5f1d7a2c8e44';
const EXAMPLE_USER = '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33';

const EXAMPLE_WIDGET = {
  widgetKey: 'by-status',
  title: 'Invoices by status',
  type: 'bar',
  layout: { x: 0, y: 0, w: 6, h: 4 },
  query: {
    objectApiName: 'Invoice__c',
    dimensions: [{ field: 'Status__c' }],
    measures: [{ key: 'invoices', aggregation: 'count' }],
  },
  options: {},
};

const EXAMPLE_BODY = { name: 'Receivables', description: 'What is open, and with whom.', widgets: [EXAMPLE_WIDGET] };

const EXAMPLE_SUMMARY = {
  dashboardId: EXAMPLE_ID,
  name: 'Receivables',
  description: 'What is open, and with whom.',
  ownerId: EXAMPLE_USER,
  visibility: 'private',
  sharedWith: [],
  version: 'draft',
  state: 'draft',
  revision: 1,
  publishedRevision: null,
  publishedAt: null,
  publishedById: null,
  timezone: null,
  capabilities: { editable: true, publishable: true, deletable: true, shareable: true },
  createdAt: '2026-11-21T00:01:22.123+00:00',
  createdById: EXAMPLE_USER,
  updatedAt: '2026-11-21T00:01:22.123+00:00',
  updatedById: EXAMPLE_USER,
};

const EXAMPLE_DASHBOARD = { ...EXAMPLE_SUMMARY, filters: [], widgets: [EXAMPLE_WIDGET] };

const EXAMPLE_PUBLISHED = {
  ...EXAMPLE_DASHBOARD,
  state: 'published',
  version: 'published',
  revision: 2,
  publishedRevision: 2,
  publishedAt: '2026-11-21T00:04:10.004+00:00',
  publishedById: EXAMPLE_USER,
};

const dashboardId = defineParameter({
  name: 'dashboardId',
  required: true,
  description: 'Id of the dashboard.',
  schema: Type.String({ format: 'uuid' }),
  example: EXAMPLE_ID,
});

const etag = {
  ETag: {
    description:
      '`"r<revision>"`, for If-Match; `"r<revision>-<what the caller sees>"` for callers who may not do everything with it.',
    schema: Type.String(),
  },
};

const READ = { tag: 'analytics', scopes: ['analytics:read'], cost: 2 } as const;
/** A dashboard that others see from then on. */
const SHARING = { properties: { visibility: 'private', sharedWith: [] }, scope: 'users:manage' } as const;

const CHANGE = { ...TRIED, tag: 'analytics', scopes: ['analytics:run'], cost: 3 } as const;

const DASHBOARD_ERRORS = ['DASHBOARD_NOT_FOUND', 'RECORD_ACCESS_DENIED'] as const;
const CONTENT_ERRORS = [
  'PARAMETER_INVALID',
  'DASHBOARD_INVALID',
  'WIDGET_QUERY_INVALID',
  'VALIDATION_FAILED',
  'TOO_MANY_ITEMS',
] as const;

const ANALYTICS_OPERATIONS = [
  defineOperation({
    ...READ,
    operationId: 'analytics.catalog.get',
    method: 'GET',
    path: '/analytics/catalog/{objectApiName}',
    summary: 'Say what can be asked of an object',
    description: 'The fields that the caller reads and can group by or measure.',
    pathParameters: [objectApiName],
    headerParameters: [acceptLanguage],
    response: {
      status: 200,
      description: 'Dimensions and measures.',
      schema: Catalog,
      headers: contentLanguage,
      example: EXAMPLE_CATALOG,
    },
    errors: ['OBJECT_NOT_FOUND'],
    action: 'analytics.catalog.get',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'analytics.dashboards.create',
    method: 'POST',
    path: '/analytics/dashboards',
    summary: 'Create a dashboard',
    description:
      'The draft belongs to the caller. Sharing a dashboard does not share records: viewers see those that they may read.',
    risk: 'medium',
    givesAccess: SHARING,
    changes: { kind: 'dashboard', needs: 'create' },
    requestBody: {
      required: true,
      schema: CreateBody,
      maxBytes: LIMITS.dashboard_max_bytes,
      example: EXAMPLE_BODY,
    },
    response: {
      status: 201,
      description: 'The dashboard, at revision 1.',
      schema: Dashboard,
      headers: { ...etag, Location: { description: 'Address of the dashboard.', schema: Type.String() } },
      example: EXAMPLE_DASHBOARD,
    },
    errors: [...KEY_ERRORS, ...CONTENT_ERRORS],
    action: 'analytics.dashboards.create',
  }),
  defineOperation({
    ...READ,
    operationId: 'analytics.dashboards.list',
    method: 'GET',
    path: '/analytics/dashboards',
    summary: 'List dashboards',
    description: 'Dashboards that the caller can see, by name; without filters and widgets.',
    queryParameters: [
      {
        name: 'scope',
        description: '`mine`: the caller is the owner; `shared`: with the caller by name, role or group.',
        schema: Type.Enum(['all', 'mine', 'public', 'shared'], { default: 'all' }),
        example: 'mine',
      },
      {
        name: 'search',
        description: 'Part of the name or description, in any case.',
        schema: Type.String({ minLength: 1, maxLength: LIMITS.search_max_chars }),
        example: 'receiv',
      },
      {
        name: 'page',
        description: 'From 1.',
        schema: Type.Integer({ minimum: 1, maximum: LIMITS.dashboard_page_max, default: 1 }),
        example: 1,
      },
      {
        name: 'pageSize',
        description: 'Dashboards on a page.',
        schema: Type.Integer({
          minimum: 1,
          maximum: LIMITS.dashboard_page_size_max,
          default: LIMITS.dashboard_page_size_default,
        }),
        example: 25,
      },
    ],
    response: {
      status: 200,
      description: 'A page of dashboards.',
      schema: Type.Object(
        {
          records: Type.Array(
            Type.Object({ ...summaryFields, widgetCount: Type.Integer({ minimum: 0 }) }, { title: 'DashboardSummary' }),
          ),
          page: Type.Integer({ minimum: 1 }),
          pageSize: Type.Integer({ minimum: 1 }),
          total: Type.Integer({ minimum: 0, description: 'Dashboards on all pages.' }),
          nextCursor: nullable(Type.String({ description: 'Always null: pages have numbers.' })),
        },
        { title: 'DashboardPage' },
      ),
      example: {
        records: [{ ...EXAMPLE_SUMMARY, widgetCount: 1 }],
        page: 1,
        pageSize: 25,
        total: 1,
        nextCursor: null,
      },
    },
    errors: [],
    action: 'analytics.dashboards.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'analytics.dashboards.get',
    method: 'GET',
    path: '/analytics/dashboards/{dashboardId}',
    summary: 'Read a dashboard',
    description: 'Without `version`: the published one, or the draft where there is none and the caller may edit it.',
    pathParameters: [dashboardId],
    queryParameters: [
      {
        name: 'version',
        description: 'The draft is for those who may edit it.',
        schema: Version,
        example: 'published',
      },
    ],
    headerParameters: [
      {
        name: 'If-None-Match',
        description: 'ETag of an earlier answer; 304 when nothing changed for the caller.',
        schema: Type.String(),
      },
    ],
    response: {
      status: 200,
      description: 'The dashboard.',
      schema: Dashboard,
      headers: etag,
      example: EXAMPLE_DASHBOARD,
    },
    errors: ['DASHBOARD_NOT_FOUND', 'DASHBOARD_VERSION_NOT_FOUND'],
    action: 'analytics.dashboards.get',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'analytics.dashboards.update',
    method: 'PATCH',
    path: '/analytics/dashboards/{dashboardId}',
    summary: 'Change the draft of a dashboard',
    description:
      'Properties that the body omits stay; lists are replaced as a whole. Viewers keep seeing the published ' +
      'version, while visibility and sharing, which the owner sets, take effect at once.',
    risk: 'medium',
    givesAccess: SHARING,
    changes: { kind: 'dashboard', needs: 'update' },
    precondition: 'expectedRevision',
    pathParameters: [dashboardId],
    requestBody: {
      required: true,
      schema: UpdateBody,
      maxBytes: LIMITS.dashboard_max_bytes,
      example: { name: 'Receivables by status', expectedRevision: 1 },
    },
    response: {
      status: 200,
      description: 'The draft, one revision later.',
      schema: Dashboard,
      headers: etag,
      example: { ...EXAMPLE_DASHBOARD, name: 'Receivables by status', revision: 2 },
    },
    errors: [...KEY_ERRORS, ...DASHBOARD_ERRORS, ...CONTENT_ERRORS],
    action: 'analytics.dashboards.update',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'analytics.dashboards.delete',
    method: 'DELETE',
    path: '/analytics/dashboards/{dashboardId}',
    summary: 'Delete a dashboard',
    description: `Both versions are gone for everybody. It is removed for good after ${LIMITS.dashboard_kept_days} days; no operation brings it back before.`,
    risk: 'high',
    changes: { kind: 'dashboard', needs: 'delete' },
    precondition: 'expectedRevision',
    pathParameters: [dashboardId],
    queryParameters: [
      {
        name: 'expectedRevision',
        description: 'Revision that was read; or X-Expected-Revision or If-Match in its place.',
        schema: Revision,
        example: 1,
      },
    ],
    response: { status: 204, description: 'The dashboard is gone.' },
    errors: [...KEY_ERRORS, ...DASHBOARD_ERRORS],
    action: 'analytics.dashboards.delete',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'analytics.dashboards.publish',
    method: 'POST',
    path: '/analytics/dashboards/{dashboardId}/publish',
    summary: 'Publish a dashboard',
    description:
      'Publishes the draft at the expected revision to all viewers, and writes `analytics.dashboard.published` with it.',
    risk: 'medium',
    changes: { kind: 'dashboard', needs: 'publish' },
    precondition: 'expectedRevision',
    pathParameters: [dashboardId],
    requestBody: {
      required: true,
      schema: PublishBody,
      maxBytes: LIMITS.transition_body_max_bytes,
      example: { expectedRevision: 1, comment: 'Agreed with Finance.' },
    },
    response: {
      status: 201,
      description: 'The published version, one revision later.',
      schema: Dashboard,
      headers: etag,
      example: EXAMPLE_PUBLISHED,
    },
    errors: [...KEY_ERRORS, ...DASHBOARD_ERRORS, 'PARAMETER_INVALID'],
    action: 'analytics.dashboards.publish',
  }),
  defineOperation({
    tag: 'analytics',
    operationId: 'analytics.dashboards.widgets.run',
    method: 'POST',
    mutation: false,
    path: '/analytics/dashboards/{dashboardId}/widgets/{widgetKey}/run',
    summary: 'Run a widget',
    description:
      'Groups and measures the records that the caller can see. The result may be up to a minute old: see `fromCache` and `dataAsOf`.',
    scopes: ['analytics:run'],
    risk: 'medium',
    cost: 5,
    manyAtOnce: true,
    pathParameters: [
      dashboardId,
      {
        name: 'widgetKey',
        required: true,
        description: 'Key of the widget.',
        schema: Type.String(),
        example: 'by-status',
      },
    ],
    requestBody: {
      required: false,
      schema: RunBody,
      maxBytes: LIMITS.body_max_bytes,
      example: { conditions: [{ id: 'c1', field: 'Amount__c', operator: 'gt', value: 1000 }], limit: 50 },
    },
    response: {
      status: 200,
      description: 'The result.',
      schema: WidgetResult,
      example: {
        dashboardId: EXAMPLE_ID,
        widgetKey: 'by-status',
        version: 'published',
        revision: 2,
        columns: [
          { key: 'Status__c', label: 'Status', role: 'dimension', fieldType: 'picklist', currency: null },
          { key: 'invoices', label: 'Count', role: 'measure', fieldType: 'integer', currency: null },
        ],
        rows: [
          ['sent', 41],
          ['overdue', 7],
        ],
        totals: { invoices: 48 },
        rowCount: 2,
        truncated: false,
        nextCursor: null,
        computedAt: '2026-11-21T00:01:22.123+00:00',
        dataAsOf: '2026-11-21T00:01:22.101+00:00',
        accessNotes: [
          { code: 'ROWS_RESTRICTED', field: null, message: 'Only records that you have access to are counted.' },
        ],
        labels: { Status__c: { sent: 'Sent', overdue: 'Overdue' } },
        fromCache: false,
        durationMs: 12.4,
      },
    },
    errors: [
      'DASHBOARD_NOT_FOUND',
      'DASHBOARD_VERSION_NOT_FOUND',
      'WIDGET_NOT_FOUND',
      'WIDGET_QUERY_INVALID',
      'PARAMETER_INVALID',
      'CURSOR_INVALID',
      'CURSOR_EXPIRED',
      'CURSOR_QUERY_MISMATCH',
      'WRITE_CONTENTION',
    ],
    action: 'analytics.dashboards.widgets.run',
  }),
] as const;

export const SERVICE = {
  purpose: 'Dashboards. Results of their widgets stay in memory for a while.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 4 },
    connections: 4,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: { tenants: 'records', jobs: true },
  operations: ANALYTICS_OPERATIONS,
  guidance: ANALYTICS_GUIDANCE,
  calls: [
    'data.objects.catalog',
    'data.principals.check',
    'data.records.aggregate',
    'data.users.access',
    'metadata.dashboards.list',
    'metadata.tenants.list',
  ],
  repeatable: ['analytics.access.check'],
  consent: {
    'analytics:read': { area: 'dashboards', text: 'Read dashboards.' },
    'analytics:run': { area: 'dashboards', text: 'Show figures, and create, change and delete dashboards.' },
  },
  moving: {
    parts: [
      { name: 'dashboards', table: 'analytics.dashboards', group: 'setup' },
      { name: 'dashboard-versions', table: 'analytics.dashboard_versions', group: 'setup' },
      { name: 'dashboard-shares', table: 'analytics.dashboard_shares', group: 'setup' },
      { name: 'dashboards-deployed', table: 'analytics.deployed', group: 'setup' },
    ],
  },
} as const satisfies ServiceDeclaration<typeof ANALYTICS_OPERATIONS>;
