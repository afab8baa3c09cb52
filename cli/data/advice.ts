/** Suggestions for unknown names of objects and fields. */
import { similarName } from '../../lib/values/similar.ts';
import { ApiFailure } from '../failure.ts';
import type { Api } from '../http/api.ts';
import { describe } from './objects.ts';

/** Codes of violations that name a field which the person cannot see, or which is not there. */
const FIELD_CODES: ReadonlySet<string> = new Set([
  'PARAMETER_INVALID',
  'FILTER_FIELD_UNKNOWN',
  'SORT_INVALID',
  'SEARCH_FIELD_INVALID',
  'FIELD_UNKNOWN',
]);

/**
 * The failure of a command on an object, with the name that was meant as advice, where one that the person can see is
 * similar. Anything else comes back as it is.
 */
export async function withNames(api: () => Promise<Api>, error: unknown, objectApiName: unknown): Promise<unknown> {
  if (!(error instanceof ApiFailure) || error.hint || typeof objectApiName !== 'string') return error;
  try {
    const advice =
      error.code === 'OBJECT_NOT_FOUND'
        ? await objectMeant(await api(), objectApiName)
        : await fieldsMeant(await api(), error, objectApiName);
    return advice === null ? error : error.advised(advice);
  } catch {
    // The answer to the command itself matters more than advice on it.
    return error;
  }
}

async function objectMeant(api: Api, name: string): Promise<string> {
  const { body } = await api.call('schema.objects.list', {});
  const meant = similarName(
    name,
    body.records.map(({ apiName }) => apiName),
  );
  return meant === null ? 'erp objects list shows those that you can read.' : `Did you mean ${meant}?`;
}

async function fieldsMeant(api: Api, { answer }: ApiFailure, objectApiName: string): Promise<string | null> {
  const wrong = (answer.errors ?? []).flatMap(({ code, field }) =>
    field !== null && FIELD_CODES.has(code) ? [field] : [],
  );
  if (wrong.length === 0) return null;
  const { fields } = await describe(api, objectApiName);
  const names = fields.map(({ apiName }) => apiName);
  const unknown = [...new Set(wrong)].filter((name) => !names.includes(name));
  if (unknown.length === 0) return null;
  const meant = unknown.flatMap((name) => similarName(name, names) ?? []);
  return meant.length > 0
    ? `Did you mean ${meant.join(', ')}?`
    : `erp objects describe ${objectApiName} shows the fields that you can read.`;
}
