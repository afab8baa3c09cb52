/** What can be asked of an object, for who builds a widget. */
import type { Handler } from '../../../contracts/operations.ts';
import { languageHeaders } from '../../../lib/operation.ts';
import type { AnalyticsDeps } from '../deps.ts';

export const getCatalog: Handler<'analytics.catalog.get', AnalyticsDeps> = async ({ catalogOf }, _request, call) => {
  const { language, ...body } = await catalogOf(call.path.objectApiName, call.headers.acceptLanguage);
  return { headers: languageHeaders(language), body };
};
