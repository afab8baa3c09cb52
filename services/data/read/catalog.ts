/** Aggregations that a user may run on an object's records. Source: docs/reference/aggregation.md. */
import type { ObjectCatalog } from '../../../contracts/data/aggregate.ts';
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import type { Asker } from '../../../lib/context.ts';
import { AGGREGATE_LIMITS, aggregationsFor } from '../../../lib/query/aggregate.ts';
import { granularitiesOf, groupable, operatorsFor } from '../../../lib/query/capabilities.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import { type Labels, labelsFor } from '../../../lib/schema/labels.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { visibleObject } from '../object-access.ts';
import { fromCurrentView } from './objects.ts';
import type { ReadDeps } from './read.ts';

export const catalogOf = (
  deps: ReadDeps,
  asker: Asker,
  { objectApiName, acceptLanguage }: { objectApiName: string; acceptLanguage?: string },
): Promise<ObjectCatalog> =>
  fromCurrentView(deps, asker, (view) =>
    catalog(view.access, visibleObject(view, objectApiName), labelsFor(view.snapshot, acceptLanguage)),
  );

function catalog(access: Access, entry: ObjectAccess, labels: Labels): ObjectCatalog {
  const { object, readable } = entry;
  return {
    objectApiName: object.apiName,
    language: labels.language,
    label: labels.of('CustomObject', object.apiName, object.label),
    dimensions: readable.filter(groupable).map((field) => ({
      field: field.apiName,
      label: labels.ofField(object.apiName, field),
      fieldType: valueTypeName(field),
      granularities: granularitiesOf(field),
      choices:
        field.picklistValues?.map(({ value, label }) => ({
          value,
          label: labels.ofValue(object.apiName, field, value, label),
        })) ?? null,
      filterOperators: operatorsFor(field),
    })),
    measures: readable.flatMap((field) => {
      const aggregations = aggregationsFor(field, entry);
      return aggregations.length === 0
        ? []
        : [
            {
              field: field.apiName,
              label: labels.ofField(object.apiName, field),
              fieldType: valueTypeName(field),
              aggregations,
              semantics: field.semantics,
            },
          ];
    }),
    relationships: object.childRelationships
      .filter(({ objectApiName: child, field }) => ownEntry(access.objects, child)?.fields[field]?.read)
      .map(({ relationshipName, objectApiName: child }) => ({ relationshipName, objectApiName: child })),
    limits: {
      maxDimensions: AGGREGATE_LIMITS.dimensions_max,
      maxMeasures: AGGREGATE_LIMITS.measures_max,
      maxRows: AGGREGATE_LIMITS.rows_max,
    },
  };
}
