/** Aggregations that an object offers, for authors of widgets. */
import type { Handler } from '../../../contracts/operations.ts';
import { languageHeaders } from '../../../lib/operation.ts';
import type { AnalyticsDeps } from '../deps.ts';

export const getCatalog: Handler<'analytics.catalog.get', AnalyticsDeps> = async ({ catalogOf }, _request, call) => {
  const { language, ...body } = await catalogOf(call.path.objectApiName, call.headers.acceptLanguage);
  return { headers: languageHeaders(language), body };
};
