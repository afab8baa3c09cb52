/**
 * A request and its preview as a reader may see them: pure. Values of fields that the reader cannot read, and of records
 * that sharing hides from them, are `[hidden]`. Source: docs/reference/agents.md#approvals.
 */
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';

export const HIDDEN = '[hidden]';

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const reads = (object: ObjectAccess | undefined, field: string): boolean =>
  object !== undefined && ownEntry(object.fields, field)?.read === true;

/** The values of readable fields; reserved properties such as `_etag` are not fields. */
export function hideFields(value: unknown, object: ObjectAccess | undefined): unknown {
  if (!isObject(value)) return value === null ? null : HIDDEN;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, name.startsWith('_') || reads(object, name) ? one : HIDDEN]),
  );
}

/** What a dry run on an object answered. `readsRecord`: sharing shows the record to the reader, or there is none yet. */
export function hidePreview(preview: Json, access: Access, objectApiName: string, readsRecord: boolean): Json {
  const object = ownEntry(access.objects, objectApiName);
  const shownRecord = (value: unknown): unknown => {
    if (value === null || readsRecord) return hideFields(value, object);
    return HIDDEN;
  };
  const shown = ([name, value]: readonly [string, unknown]): readonly [string, unknown] => {
    switch (name) {
      case 'record':
      case 'before':
        return [name, shownRecord(value)];
      case 'errors':
        return [name, listOf(value, (error) => hideError(error, object))];
      case 'duplicates':
        return [name, listOf(value, hideDuplicates)];
      case 'effects':
        return [name, listOf(value, (effect) => hideEffect(effect, access))];
      default:
        return [name, typeof value === 'boolean' ? value : HIDDEN];
    }
  };
  return Object.fromEntries(Object.entries(preview).map(shown));
}

const listOf = (value: unknown, shown: (item: Json) => unknown): unknown =>
  Array.isArray(value) ? value.map((item: unknown) => (isObject(item) ? shown(item) : HIDDEN)) : HIDDEN;

/** Messages and parameters can repeat values. */
function hideError(error: Json, object: ObjectAccess | undefined): Json {
  const { field } = error;
  if (typeof field !== 'string' || reads(object, field)) return error;
  return { ...error, message: HIDDEN, params: {} };
}

/** Which records are similar depends on what the agent's user sees; the reader may see fewer. */
const hideDuplicates = (rule: Json): Json => ({
  ...rule,
  matches: listOf(rule['matches'], (match) => ({ ...match, displayName: HIDDEN, record: HIDDEN })),
});

function hideEffect(effect: Json, access: Access): Json {
  const { objectApiName, fields } = effect;
  const object = typeof objectApiName === 'string' ? ownEntry(access.objects, objectApiName) : undefined;
  if (!object) return { ...effect, objectApiName: HIDDEN, id: null, fields: [] };
  if (!Array.isArray(fields)) return effect;
  return { ...effect, fields: fields.map((name: unknown) => (reads(object, String(name)) ? name : HIDDEN)) };
}
