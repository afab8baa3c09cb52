/** Dashboard: widgets that group and measure records, with the permissions of the viewer. Deploying publishes it. */
import { type TSchema, Type } from 'typebox';
import {
  DASHBOARD_BOUNDS,
  KEY_PATTERN,
  VISIBILITIES,
  WIDGET_KEY_PATTERN,
  WIDGET_TYPES,
} from '../../../contracts/analytics.ts';
import { contentProblems } from '../../../lib/dashboards/content.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { GRANULARITIES } from '../../../lib/query/types.ts';
import { AGGREGATIONS, OPERATORS } from '../../../lib/schema/field-types/types.ts';
import { type BodyOf, componentsOf, componentType } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { API_NAME, apiName, flag, group, label, listOf, optional, shownChoice, text } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

/** Components of this kind in a tenant. */
const DASHBOARDS_MAX = 500;

const field = (description: string) => Type.String({ pattern: API_NAME, description });
const value = (description: string): TSchema => Type.Unknown({ description });

const condition = {
  field: field('A field of the object.'),
  operator: Type.Enum([...OPERATORS], { description: 'As in filters of lists.' }),
  value: optional(value('Value to compare with.')),
  valueTo: optional(value('Upper end of between.')),
};

const QUERY = group(
  {
    objectApiName: apiName('Whose records.'),
    dimensions: optional(
      listOf(
        group(
          {
            field: field('What it is grouped by.'),
            granularity: optional(Type.Enum([...GRANULARITIES], { description: 'Of a date.' })),
          },
          'A dimension.',
        ),
        'What the records are grouped by, in this order.',
        LIMITS.widget_dimensions_max,
      ),
    ),
    measures: Type.Array(
      group(
        {
          key: Type.String({ pattern: KEY_PATTERN, description: 'Key of the column.' }),
          aggregation: Type.Enum([...AGGREGATIONS], { description: 'All but count need a field.' }),
          field: optional(field('Field to aggregate.')),
        },
        'A measure.',
      ),
      { minItems: 1, maxItems: LIMITS.widget_measures_max, description: 'Measures of each group.' },
    ),
    filters: optional(
      group(
        {
          logic: Type.Enum(['and', 'or'], { description: 'How the conditions are joined.' }),
          conditions: Type.Array(
            group(
              { id: Type.String({ minLength: 1, maxLength: 64, description: 'Names it in errors.' }), ...condition },
              'A condition.',
            ),
            { minItems: 1, maxItems: LIMITS.filter_conditions_max, description: 'One group.' },
          ),
        },
        'Which records.',
      ),
    ),
    sort: optional(
      listOf(
        group(
          {
            id: Type.String({
              minLength: 1,
              maxLength: DASHBOARD_BOUNDS.columnKeyChars,
              description: 'Key of a column.',
            }),
            desc: optional(flag(false, 'Downwards.')),
          },
          'A column.',
        ),
        'Order of the groups.',
        LIMITS.sort_max,
      ),
    ),
    limit: optional(Type.Integer({ minimum: 1, maximum: LIMITS.widget_rows_max, description: 'Rows of the answer.' })),
  },
  'What is asked. A text has no query.',
);

const DASHBOARD = componentType('Dashboard', {
  apiName: apiName('Stable name.'),
  name: Type.String({
    minLength: 1,
    maxLength: DASHBOARD_BOUNDS.nameChars,
    pattern: '\\S',
    description: 'As people see it.',
  }),
  description: optional(text('Purpose of the dashboard.', DASHBOARD_BOUNDS.descriptionChars)),
  visibility: shownChoice(VISIBILITIES, 'private', 'Visible to administrators, those it is shared with, or all users.'),
  sharedWith: optional(
    listOf(
      group(
        {
          principalType: Type.Enum(['role', 'group'], { description: 'Users are named through the API.' }),
          principalId: apiName('The role, with those above it, or the group.'),
          access: Type.Enum(['view', 'edit'], { description: 'Look at it, or change it as well.' }),
        },
        'With whom.',
      ),
      'With whom it is shared.',
      LIMITS.dashboard_shares_max,
    ),
  ),
  timezone: optional(
    Type.String({
      maxLength: DASHBOARD_BOUNDS.timezoneChars,
      description: "IANA name; default: the viewer's time zone.",
    }),
  ),
  filters: optional(
    listOf(
      group(
        {
          filterKey: Type.String({ pattern: KEY_PATTERN, description: 'Names it when a widget is run.' }),
          label: label('As people see it.', DASHBOARD_BOUNDS.filterLabelChars),
          objectApiName: apiName('The widgets on this object are filtered.'),
          ...condition,
          locked: optional(flag(false, 'Viewers cannot change the value.')),
        },
        'A filter.',
      ),
      'Conditions on all widgets of an object.',
      LIMITS.dashboard_filters_max,
    ),
  ),
  widgets: optional(
    listOf(
      group(
        {
          widgetKey: Type.String({ pattern: WIDGET_KEY_PATTERN, description: 'Stable name within the dashboard.' }),
          title: Type.String({ maxLength: DASHBOARD_BOUNDS.titleChars, description: 'As people see it.' }),
          type: Type.Enum([...WIDGET_TYPES], { description: 'How it is drawn.' }),
          layout: group(
            {
              x: Type.Integer({ minimum: 0, maximum: DASHBOARD_BOUNDS.gridColumns - 1, description: 'Column.' }),
              y: Type.Integer({ minimum: 0, maximum: DASHBOARD_BOUNDS.gridRows, description: 'Row.' }),
              w: Type.Integer({ minimum: 1, maximum: DASHBOARD_BOUNDS.gridColumns, description: 'Columns.' }),
              h: Type.Integer({ minimum: 1, maximum: DASHBOARD_BOUNDS.widgetRows, description: 'Rows.' }),
            },
            'Place on a grid of 12 columns.',
          ),
          query: optional(QUERY),
          options: optional(
            Type.Record(Type.String({ pattern: '^.{1,64}$' }), Type.Unknown(), {
              maxProperties: DASHBOARD_BOUNDS.options,
              description: 'How it is drawn.',
            }),
          ),
        },
        'A widget.',
      ),
      'What it shows.',
      LIMITS.dashboard_widgets_max,
    ),
  ),
});

type DashboardBody = BodyOf<typeof DASHBOARD>;

export const dashboard = defineKind({
  ...DASHBOARD,
  memberFormat: '<Dashboard>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'Role', 'Group'],

  references(body) {
    const { sharedWith = [], filters = [], widgets = [] } = body;
    return [
      ...sharedWith.map(
        ({ principalType, principalId }, at): Reference => ({
          type: principalType === 'role' ? 'Role' : 'Group',
          fullName: principalId,
          pointer: `/sharedWith/${at}/principalId`,
        }),
      ),
      ...filters.flatMap((filter, at) => [
        objectReference(filter.objectApiName, `/filters/${at}`),
        ...fieldReferences(filter.objectApiName, [filter], `/filters/${at}`, ''),
      ]),
      ...widgets.flatMap(({ query }, at) => (query ? queryReferences(query, `/widgets/${at}/query`) : [])),
    ];
  },

  check(component, context) {
    const content = contentOf(component.body);
    contentProblems(content, (pointer, message) => context.problem('YAML_SCHEMA_INVALID', component, pointer, message));
    const max = LIMITS.dashboard_max_bytes;
    if (Buffer.byteLength(JSON.stringify(content)) > max)
      context.problem('LIMIT_EXCEEDED', component, '', `A dashboard may have at most ${max} bytes.`, {
        details: { max },
      });
  },

  checkAll(context: CheckContext) {
    const all = componentsOf(context.after, DASHBOARD);
    const last = all.at(-1);
    if (last && all.length > DASHBOARDS_MAX)
      context.problem(
        'LIMIT_EXCEEDED',
        last,
        '',
        `A tenant may have at most ${DASHBOARDS_MAX} components of this type.`,
        {
          details: { max: DASHBOARDS_MAX },
        },
      );
  },
});

/** The component as the dashboard that it becomes, with all that it leaves out: what is saved later is measured so. */
function contentOf({ type: _type, apiName: _apiName, ...body }: DashboardBody) {
  const { description = null, timezone = null, sharedWith = [], filters = [], widgets = [] } = body;
  return {
    ...body,
    description,
    timezone,
    sharedWith,
    filters: filters.map((filter) => ({ ...filter, locked: filter.locked ?? false })),
    widgets: widgets.map(({ query, options = {}, ...widget }) => ({
      ...widget,
      query: query ? { ...query, dimensions: query.dimensions ?? [] } : null,
      options,
    })),
  };
}

type Query = NonNullable<NonNullable<DashboardBody['widgets']>[number]['query']>;

function queryReferences({ objectApiName, dimensions = [], measures, filters }: Query, pointer: string): Reference[] {
  return [
    objectReference(objectApiName, pointer),
    ...fieldReferences(objectApiName, dimensions, pointer, '/dimensions'),
    ...fieldReferences(objectApiName, measures, pointer, '/measures'),
    ...fieldReferences(objectApiName, filters?.conditions ?? [], pointer, '/filters/conditions'),
  ];
}

const objectReference = (fullName: string, pointer: string): Reference => ({
  type: 'CustomObject',
  fullName,
  pointer: `${pointer}/objectApiName`,
});

/** The fields that the items of a list name; `list` is empty for the one item that stands at the pointer itself. */
const fieldReferences = (
  object: string,
  items: readonly { readonly field?: string }[],
  pointer: string,
  list: string,
): Reference[] =>
  items.flatMap((item, at) =>
    item.field === undefined || SYSTEM_FIELD_NAMES.has(item.field)
      ? []
      : [
          {
            type: 'CustomField',
            fullName: `${object}.${item.field}`,
            pointer: list === '' ? `${pointer}/field` : `${pointer}${list}/${at}/field`,
          },
        ],
  );
