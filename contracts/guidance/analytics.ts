/** Guidance for the operations of analytics. */
import type { Guidance } from './types.ts';

export const ANALYTICS_GUIDANCE = {
  'analytics.catalog.get': {
    whenToUse:
      'Before writing the query of a widget: which fields of the object the caller can group by, measure and filter by, and with what.',
    whenNotToUse: 'Not for reading or writing records: `schema.objects.describe` knows all readable fields.',
    preconditions: ['The apiName of the object, from `schema.objects.list`.'],
    commonErrors: ['OBJECT_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'analytics.dashboards.create': {
    whenToUse: 'When somebody wants figures that they can come back to: sums, counts and charts over records.',
    whenNotToUse:
      'Not to read single records, and not to give others access to them: people who look at a dashboard see figures of their own records.',
    preconditions: ['The catalog of every object that a widget queries.'],
    commonErrors: ['WIDGET_QUERY_INVALID', 'DASHBOARD_INVALID', 'VALIDATION_FAILED', 'TOO_MANY_ITEMS'],
  },
  'analytics.dashboards.list': {
    whenToUse: 'To find a dashboard by its name or description before reading it or running its widgets.',
    whenNotToUse: 'Not for the content: widgets and filters come with `analytics.dashboards.get`.',
    preconditions: [],
    commonErrors: ['PARAMETER_INVALID', 'SCOPE_INSUFFICIENT'],
  },
  'analytics.dashboards.get': {
    whenToUse:
      'Before running a widget, to learn its `widgetKey` and the filters; before a change, to learn the `revision`.',
    whenNotToUse: 'Not for figures: it has the questions, and `analytics.dashboards.widgets.run` the answers.',
    preconditions: ['The id of the dashboard, from `analytics.dashboards.list`.'],
    commonErrors: ['DASHBOARD_NOT_FOUND', 'DASHBOARD_VERSION_NOT_FOUND'],
  },
  'analytics.dashboards.update': {
    whenToUse:
      'To change the draft of a dashboard, or whom it is shared with. Lists in the body replace the whole list.',
    whenNotToUse:
      'Not expecting that others see new widgets at once: they do after `analytics.dashboards.publish`. Visibility and shares take effect immediately.',
    preconditions: [
      'The draft was read, and its `revision` is sent as `expectedRevision`.',
      '`capabilities.editable`.',
    ],
    commonErrors: ['REVISION_MISMATCH', 'WIDGET_QUERY_INVALID', 'RECORD_ACCESS_DENIED', 'EXPECTED_REVISION_REQUIRED'],
  },
  'analytics.dashboards.delete': {
    whenToUse: 'When a person has said that this dashboard is no longer needed.',
    whenNotToUse: 'Not to hide it from others: set its visibility to `private`. No operation brings it back.',
    preconditions: ['Its `revision` was read.', '`capabilities.deletable`.'],
    commonErrors: ['REVISION_MISMATCH', 'DASHBOARD_NOT_FOUND', 'EXPECTED_REVISION_REQUIRED'],
  },
  'analytics.dashboards.publish': {
    whenToUse: 'When the draft is as it should be, to make it what everybody sees who may see the dashboard.',
    whenNotToUse: 'Not to share the dashboard: publishing changes the version that is shown and not who sees it.',
    preconditions: ['The `revision` of the draft that was looked at.', '`capabilities.publishable`.'],
    commonErrors: ['REVISION_MISMATCH', 'RECORD_ACCESS_DENIED', 'EXPECTED_REVISION_REQUIRED'],
  },
  'analytics.dashboards.widgets.run': {
    whenToUse:
      'For sums, counts and groups: it computes over all records that the caller can see, where a list would have to be read page by page.',
    whenNotToUse:
      'Not for single records, and not as the truth about the whole business: `accessNotes` says what the caller does not see, `dataAsOf` how old the figures are.',
    preconditions: ['The dashboard was read, for its `widgetKey` and its filters.'],
    commonErrors: ['WIDGET_QUERY_INVALID', 'WIDGET_NOT_FOUND', 'DASHBOARD_NOT_FOUND', 'CURSOR_EXPIRED'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;
