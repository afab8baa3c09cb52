/**
 * A request and its preview as a reader may see them: pure. A field that the reader cannot read is left out, like one
 * that does not exist; what they may know of without seeing it is `[hidden]`. Source:
 * docs/reference/agents.md#approvals.
 */
import type { RecordName } from '../../../contracts/data.ts';
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';

export const HIDDEN = '[hidden]';

type Json = Readonly<Record<string, unknown>>;

const reads = (object: ObjectAccess | undefined, field: string): boolean =>
  object !== undefined && ownEntry(object.fields, field)?.read === true;

/** Only the readable fields; reserved properties such as `_etag` are not fields. */
export function hideFields(value: unknown, object: ObjectAccess | undefined): unknown {
  if (!isObject(value)) return value === null ? null : HIDDEN;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name.startsWith('_') || reads(object, name)));
}

/** Inputs that decide a reader's view of a preview. */
interface Sight {
  readonly access: Access;
  /** Sharing shows the record to the reader, or there is none yet. */
  readonly readsRecord: boolean;
  readonly sees: (record: RecordName) => boolean;
}

/** Answer of a dry run on an object. */
export function hidePreview(preview: Json, objectApiName: string, { access, readsRecord, sees }: Sight): Json {
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
        return [name, listOf(value, (error) => hideError(error, object, readsRecord))];
      case 'duplicates':
        return [name, listOf(value, (rule) => hideDuplicates(rule, object, sees))];
      case 'effects':
        return [name, hideEffects(value, access, sees)];
      default:
        return [name, typeof value === 'boolean' ? value : HIDDEN];
    }
  };
  return Object.fromEntries(Object.entries(preview).map(shown));
}

const listOf = (value: unknown, shown: (item: Json) => unknown): unknown =>
  Array.isArray(value) ? value.map((item: unknown) => (isObject(item) ? shown(item) : HIDDEN)) : HIDDEN;

/** Shown for a field that the reader cannot read, and for one that does not exist. */
const UNSEEN_FIELD = {
  pointer: '',
  code: 'FIELD_UNKNOWN',
  message: 'There is no such field for this connection.',
  field: null,
  params: {},
};

/** Messages and parameters can repeat values, and name other fields. */
function hideError(error: Json, object: ObjectAccess | undefined, readsRecord: boolean): Json {
  const { field, code, params } = error;
  const unseen = typeof field === 'string' ? !reads(object, field) : code === 'FIELD_UNKNOWN';
  if (unseen) return UNSEEN_FIELD;
  const fields = object?.object.fields ?? {};
  const named = isObject(params) ? Object.values(params).flat() : [];
  const namesUnseen = named.some((name) => typeof name === 'string' && ownEntry(fields, name) && !reads(object, name));
  return readsRecord && !namesUnseen ? error : { ...error, message: HIDDEN, params: {} };
}

/**
 * Similar records were found with the permissions of the agent's user; the reader may see fewer, and fewer of their fields.
 */
function hideDuplicates(rule: Json, object: ObjectAccess | undefined, sees: Sight['sees']): Json {
  const matches = Array.isArray(rule['matches']) ? rule['matches'].filter(isObject) : [];
  const fieldsOf = ({ matchedFields }: Json): unknown[] => (Array.isArray(matchedFields) ? matchedFields : []);
  const isRead = (field: unknown): boolean => reads(object, String(field));
  const named = matches.every((match) => fieldsOf(match).every(isRead));
  return {
    ...rule,
    ...(named ? {} : { ruleApiName: HIDDEN, label: HIDDEN }),
    matches: matches.map(({ objectApiName, id, score, ...match }) => {
      const isSeen = sees({ objectApiName: String(objectApiName), id: String(id) });
      const shown = { objectApiName, id: isSeen ? id : HIDDEN, score: isSeen ? score : null, displayName: HIDDEN };
      return { ...shown, matchedFields: fieldsOf(match).filter(isRead), record: HIDDEN };
    }),
  };
}

/** The effects of a dry run. */
export const hideEffects = (value: unknown, access: Access, sees: Sight['sees']): unknown =>
  listOf(value, (effect) => hideEffect(effect, access, sees));

function hideEffect(effect: Json, access: Access, sees: Sight['sees']): Json {
  const { objectApiName, id, fields } = effect;
  const object = typeof objectApiName === 'string' ? ownEntry(access.objects, objectApiName) : undefined;
  if (!object) return { ...effect, objectApiName: HIDDEN, id: null, fields: [] };
  return {
    ...effect,
    id: typeof id === 'string' && sees({ objectApiName: String(objectApiName), id }) ? id : null,
    fields: Array.isArray(fields) ? fields.filter((name: unknown) => reads(object, String(name))) : [],
  };
}

/** The records that a preview says are changed. */
export function recordsIn(preview: unknown): RecordName[] {
  return namesOf(isObject(preview) ? preview['effects'] : undefined);
}

/** The records that those of a preview may be duplicates of. */
export function duplicatesIn(preview: unknown): RecordName[] {
  const rules = isObject(preview) ? preview['duplicates'] : undefined;
  return Array.isArray(rules) ? rules.filter(isObject).flatMap(({ matches }) => namesOf(matches)) : [];
}

const namesOf = (list: unknown): RecordName[] =>
  (Array.isArray(list) ? list : [])
    .filter(isObject)
    .flatMap(({ objectApiName, id }) =>
      typeof objectApiName === 'string' && typeof id === 'string' ? [{ objectApiName, id }] : [],
    );
