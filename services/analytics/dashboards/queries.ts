/**
 * Checks that the author of a widget may run its query. Hidden names look like names that do not
 * there.
 */
import type { Widget, WidgetQuery } from '../../../contracts/analytics.ts';
import type { ObjectCatalog } from '../../../contracts/data/aggregate.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';

type AddProblem = (pointer: string, message: string) => void;

/** Catalogs by object; null: there is no such object. */
export type Catalogs = ReadonlyMap<string, ObjectCatalog | null>;

/** The catalogs of the objects that the widgets ask about. */
export async function catalogsFor(
  widgets: readonly { readonly query?: Pick<WidgetQuery, 'objectApiName'> | null }[],
  catalogOf: (objectApiName: string) => Promise<ObjectCatalog>,
): Promise<Catalogs> {
  const names = new Set(widgets.flatMap(({ query }) => query?.objectApiName ?? []));
  const catalogs = [...names].map(async (name): Promise<[string, ObjectCatalog | null]> => {
    try {
      return [name, await catalogOf(name)];
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'OBJECT_NOT_FOUND') return [name, null];
      throw error;
    }
  });
  return new Map(await Promise.all(catalogs));
}

/** Reports problems of widgets' queries; unchanged ones may be another author's and are not checked. */
export function queryProblems(
  widgets: readonly Widget[],
  former: readonly Widget[],
  catalogs: Catalogs,
  add: AddProblem,
): void {
  const known = new Set(former.map(({ query }) => JSON.stringify(query)));
  widgets.forEach(({ query }, at) => {
    if (query && !known.has(JSON.stringify(query)))
      oneQuery(query, catalogs.get(query.objectApiName) ?? null, (pointer, message) =>
        add(`/widgets/${at}/query${pointer}`, message),
      );
  });
}

function oneQuery(
  { objectApiName, dimensions, measures }: WidgetQuery,
  catalog: ObjectCatalog | null,
  add: AddProblem,
) {
  if (!catalog) return add('/objectApiName', `There is no object ${objectApiName}.`);
  dimensions.forEach(({ field, granularity }, at) => {
    const found = catalog.dimensions.find((one) => one.field === field);
    if (!found) add(`/dimensions/${at}/field`, `There is no field ${field} to group by.`);
    else if (granularity !== undefined && !found.granularities.includes(granularity))
      add(`/dimensions/${at}/granularity`, `${field} cannot be grouped by ${granularity}.`);
  });
  measures.forEach(({ field, aggregation }, at) => {
    if (field === undefined) return;
    const found = catalog.measures.find((one) => one.field === field);
    if (!found) add(`/measures/${at}/field`, `There is no field ${field} to measure.`);
    else if (!found.aggregations.includes(aggregation))
      add(`/measures/${at}/aggregation`, `${aggregation} of ${field} cannot be computed.`);
  });
}
