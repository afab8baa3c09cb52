/** What the user may work with: objects, their fields, and the names of records. */
import { answer, call, inTurn } from '../../shared/api.js';

/** @import { Description, Field, Layout, ObjectSummary, ObjectType, RecordData, RecordPage, Values } from './types.d.ts' */

/** Decimals arrive as texts, with every digit. */
export const EXACT = 'application/json;IEEE754Compatible=true';
const EXPANDED_MAX = 5;
const NAMES_MAX = 200;
/** Fields that the platform keeps stand at the end of a record. */
const LAST = new Set(['createdAt', 'createdById', 'updatedAt', 'updatedById']);
const NEVER = new Set(['id', 'recordVersion', 'recordTypeApiName']);

/** @type {Promise<ObjectSummary[]> | null} */
let summaries = null;
/** @type {Map<string, Promise<ObjectType>>} */
const types = new Map();

/** In the order of their labels; asked for once. */
export function objects() {
  summaries ??= call('/objects').then(
    (/** @type {{ records: ObjectSummary[] }} */ { records }) => records.sort((a, b) => a.label.localeCompare(b.label)),
    (error) => {
      summaries = null;
      throw error;
    },
  );
  return summaries;
}

/**
 * @param {string} apiName
 * @returns {Promise<ObjectType>}
 */
export function typeOf(apiName) {
  const known = types.get(apiName);
  if (known) return known;
  const asked = call(`/objects/${apiName}/describe`).then(
    (/** @type {Description} */ description) => {
      const fields = description.fields.map((field) => withRecordTypes(field, description));
      return { ...description, fields, byName: new Map(fields.map((field) => [field.apiName, field])) };
    },
    (error) => {
      types.delete(apiName);
      throw error;
    },
  );
  types.set(apiName, asked);
  return asked;
}

/**
 * The record type is a choice like a picklist.
 * @param {Field} field
 * @param {Description} description
 * @returns {Field}
 */
function withRecordTypes(field, { recordTypes }) {
  if (field.apiName !== 'recordTypeApiName' || recordTypes.length === 0) return field;
  const picklistValues = recordTypes.map(({ apiName: value, label, active, default: isDefault }) => ({
    ...{ value, label, active, isDefault, validFor: null },
  }));
  return { ...field, picklistValues };
}

/**
 * References are in the order of their ids, which tells people nothing.
 * @param {Field} field
 */
export const isSortable = (field) => field.sortable && !isReference(field);

/** @param {Field} field */
export const isReference = ({ fieldType }) => fieldType === 'reference' || fieldType === 'masterDetail';

/**
 * The fields that are there, in the order of their names.
 * @param {ObjectType} type
 * @param {readonly string[]} names
 */
export const fieldsOf = (type, names) => names.flatMap((name) => type.byName.get(name) ?? []);

/**
 * The layout of a record; without one, its fields in two columns.
 * @param {ObjectType} type
 * @param {unknown} recordType
 * @returns {Layout}
 */
export function layoutOf({ layouts, fields, label }, recordType) {
  const found =
    layouts.find(({ recordTypes }) => recordTypes.includes(String(recordType))) ?? layouts.find((one) => one.default);
  if (found) return found;
  /** The name first, what is required next, the owner last. @param {Field} field */
  const rank = ({ apiName, required }) => (apiName === 'name' ? 0 : required ? 1 : apiName === 'ownerId' ? 3 : 2);
  const names = fields
    .toSorted((a, b) => rank(a) - rank(b))
    .map(({ apiName }) => apiName)
    .filter((name) => !NEVER.has(name) && !LAST.has(name));
  const half = Math.ceil(names.length / 2);
  return {
    default: true,
    recordTypes: [],
    sections: [{ label, columns: [names.slice(0, half), names.slice(half)] }],
    relatedLists: [],
  };
}

/**
 * Columns of a list without a list view.
 * @param {ObjectType} type
 */
export function defaultColumns(type) {
  const view = type.listViews[0];
  if (view) return view.columns;
  const names = layoutOf(type, null).sections.flatMap(({ columns }) => columns.flat());
  const short = fieldsOf(type, ['name', ...names]).filter(({ fieldType }) => !LONG.has(fieldType));
  return [...new Set(short.map(({ apiName }) => apiName))].slice(0, 6);
}

const LONG = new Set(['longText', 'richText', 'json', 'address', 'geolocation']);

/**
 * References whose names can be asked for along with a record, as `expand` takes them.
 * @param {readonly Field[]} fields
 */
async function expandable(fields) {
  const readable = new Set((await objects()).map(({ apiName }) => apiName));
  return fields.filter((field) => isReference(field) && readable.has(field.referenceTo[0] ?? ''));
}

/**
 * Fields to ask for so that these can be shown: the currencies of amounts belong to them.
 * @param {readonly Field[]} fields
 */
const askedFor = (fields) => [
  ...new Set([
    'name',
    ...fields.flatMap(({ apiName, currencyField }) => [apiName, ...(currencyField ? [currencyField] : [])]),
  ]),
];

/**
 * A page of a list, with the names of references.
 * @param {ObjectType} type
 * @param {readonly Field[]} fields
 * @param {Values} query
 * @param {AbortSignal} [signal]
 * @returns {Promise<RecordPage>}
 */
export async function query(type, fields, query, signal) {
  const references = (await expandable(fields)).slice(0, EXPANDED_MAX);
  const expand = Object.fromEntries(references.map(({ apiName }) => [apiName, ['name']]));
  return call(`/data/${type.apiName}/query`, {
    body: {
      fields: askedFor(fields).filter((name) => type.byName.has(name)),
      ...(references.length > 0 ? { expand } : {}),
      ...query,
    },
    accept: EXACT,
    ...(signal ? { signal } : {}),
  });
}

/**
 * A record with the names of its references. One request expands five references, so that more of them take several.
 * @param {ObjectType} type
 * @param {string} id
 * @returns {Promise<{ record: RecordData, etag: string }>}
 */
export async function read(type, id) {
  const placed = new Set(type.layouts.flatMap(({ sections }) => sections.flatMap(({ columns }) => columns.flat())));
  const seen =
    placed.size === 0 ? type.fields : type.fields.filter((field) => field.system || placed.has(field.apiName));
  const references = (await expandable(seen)).map(({ apiName }) => `${apiName}(name)`);
  const first = references.splice(0, EXPANDED_MAX);
  const path = `/data/${type.apiName}/${id}`;
  const rest = [];
  while (references.length > 0) rest.push(references.splice(0, EXPANDED_MAX));
  const [response, ...others] = await Promise.all([
    answer(first.length > 0 ? `${path}?${new URLSearchParams({ expand: first.join(',') })}` : path, { accept: EXACT }),
    ...rest.map((some) => call(`${path}?${new URLSearchParams({ fields: 'id', expand: some.join(',') })}`)),
  ]);
  /** @type {RecordData} */
  const record = await response.json();
  for (const { _expanded } of others) record._expanded = { ...record._expanded, ..._expanded };
  return { record, etag: response.headers.get('etag') ?? '' };
}

/**
 * Names of records that are known by their ids; those that the user cannot see are missing.
 * @param {string} apiName
 * @param {Iterable<string>} ids
 * @returns {Promise<Map<string, string>>}
 */
export async function namesOf(apiName, ids) {
  const wanted = [...new Set(ids)].slice(0, NAMES_MAX);
  if (wanted.length === 0 || !(await objects()).some((one) => one.apiName === apiName)) return new Map();
  /** @type {RecordPage} */
  const { records } = await inTurn(() =>
    call(`/data/${apiName}/query`, { body: { fields: ['name'], whereIn: { id: wanted }, take: NAMES_MAX } }),
  );
  return new Map(records.map(({ id, name }) => [id, String(name ?? id)]));
}

/**
 * @param {string} apiName
 * @param {string} [id]
 * @param {Record<string, string>} [query]
 */
export function addressOf(apiName, id, query = {}) {
  const asked = new URLSearchParams(query).toString();
  return `/app/${apiName}${id ? `/${id}` : ''}${asked ? `?${asked}` : ''}`;
}
