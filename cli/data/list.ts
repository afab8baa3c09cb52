/** `data list`: pages of records, one or all of them. */

import { pages } from '../../client/pages.ts';
import type { OperationOutput } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { Run } from '../command.ts';
import { usage } from '../failure.ts';
import type { Answer, Api, CallInput } from '../http/api.ts';
import { counted, valueText } from '../output/values.ts';
import { parse } from './assignments.ts';
import { type Filters, readConditions } from './conditions.ts';
import { namesOf, userIdOf } from './names.ts';
import { describe, fieldOf, type ObjectDescription } from './objects.ts';
import { columnsOf, type DataRecord, defaultFields, expandedNames, flattened, recordOf, rowOf } from './records.ts';

export interface ListOptions {
  fields?: string | undefined;
  expand?: string | undefined;
  where?: string[] | undefined;
  any?: true | undefined;
  filters?: string | undefined;
  sort?: string | undefined;
  search?: string | undefined;
  searchFields?: string | undefined;
  take?: number | undefined;
  cursor?: string | undefined;
  total?: true | undefined;
  all?: true | undefined;
  csv?: true | undefined;
}

type Query = NonNullable<CallInput<'data.records.list'>['query']>;
type Page = Answer<OperationOutput<'data.records.list'>>;

export async function listRecords(run: Run, objectApiName: string, options: ListOptions): Promise<void> {
  const api = await run.api();
  const { output } = run;
  if (options.filters !== undefined && options.where) throw usage('--filters and --where cannot be combined.');
  if (options.any && !options.where) throw usage('--any says how several --where are joined.');
  if (options.csv && output.json) throw usage('--csv and --json cannot be combined.');
  const description = output.json && !options.where ? null : await describe(api, objectApiName);
  const sorted = options.sort ? sortOf(options.sort).map(({ id }) => id) : [];
  const names =
    options.fields?.split(',').map((name) => name.trim()) ?? (description ? defaultFields(description, sorted) : []);
  const query = queryOf(options, description, output.json ? undefined : names.join(','));
  if (description && options.where) await nameUsers(api, query, description);
  if (output.json)
    return options.all ? allAsLines(run, api, objectApiName, query) : onePage(run, api, objectApiName, query);
  const chosen = options.fields !== undefined;
  const shown = { names, description, chosen, all: options.all === true, csv: options.csv === true };
  await asTable(run, api, objectApiName, query, shown);
}

function queryOf(options: ListOptions, description: ObjectDescription | null, fields: string | undefined): Query {
  const { where, any, filters, expand, sort, search, searchFields, take, cursor, total, all } = options;
  const asked = options.fields ?? fields;
  const size = take ?? (all ? LIMITS.take_max : undefined);
  const conditions =
    where === undefined
      ? undefined
      : readConditions(where, any === true, (name) => (description ? fieldOf(description, name) : undefined));
  return {
    ...(asked ? { fields: asked } : {}),
    ...(expand ? { expand } : {}),
    ...(conditions ? { filters: conditions } : {}),
    ...(filters === undefined ? {} : { filters: parse(filters, '--filters') }),
    ...(sort ? { sort: sortOf(sort) } : {}),
    ...(search === undefined ? {} : { search }),
    ...(searchFields ? { searchFields } : {}),
    ...(size ? { take: size } : {}),
    ...(cursor ? { cursor } : {}),
    ...(total ? { includeTotal: true } : {}),
  };
}

/** Conditions on users may name them by username. */
async function nameUsers(api: Api, query: Query, description: ObjectDescription): Promise<void> {
  const conditions = (query.filters as Filters | undefined)?.conditions ?? [];
  const idOf = (value: unknown): unknown => (typeof value === 'string' ? userIdOf(api, value) : value);
  for (const condition of conditions) {
    const { field, value } = condition;
    if (!EXACT.has(condition.operator) || !fieldOf(description, field)?.referenceTo.includes('User')) continue;
    condition.value = Array.isArray(value) ? await Promise.all(value.map(idOf)) : await idOf(value);
  }
}

const EXACT = new Set(['eq', 'neq', 'in', 'not_in']);

const sortOf = (text: string): { id: string; desc: boolean }[] =>
  text.split(',').map((item) => {
    const name = item.trim();
    return { id: name.replace(/^[-+]/, ''), desc: name.startsWith('-') };
  });

const page = (api: Api, objectApiName: string, query: Query, decimalsAsText: boolean): Promise<Page> =>
  api.call('data.records.list', { path: { objectApiName }, query }, { decimalsAsText });

async function onePage(run: Run, api: Api, objectApiName: string, query: Query): Promise<void> {
  run.output.result(await page(api, objectApiName, query, false), () => undefined);
}

const pagesOf = (api: Api, objectApiName: string, query: Query, decimalsAsText: boolean): AsyncGenerator<Page> =>
  pages(
    (cursor) => page(api, objectApiName, { ...query, ...(cursor ? { cursor } : {}) }, decimalsAsText),
    ({ body }) => body.nextCursor,
    query.cursor,
  );

async function allAsLines(run: Run, api: Api, objectApiName: string, query: Query): Promise<void> {
  for await (const { body } of pagesOf(api, objectApiName, query, false))
    for (const record of body.records) run.output.data(JSON.stringify(record));
}

interface Shown {
  names: readonly string[];
  description: ObjectDescription | null;
  /** The fields were named: references stay ids. */
  chosen: boolean;
  all: boolean;
  csv: boolean;
}

async function asTable(run: Run, api: Api, objectApiName: string, query: Query, shown: Shown): Promise<void> {
  const { output } = run;
  const expanded = expandedNames(query.expand);
  const columns = [...columnsOf(shown.names, shown.description), ...columnsOf(expanded, null)];
  const write = shown.csv ? output.csvWriter(columns.map(({ title }) => title)) : output.tableWriter(columns);
  const references = shown.chosen ? [] : referencesOf(shown.names, shown.description);
  let count = 0;
  for await (const { body } of pagesOf(api, objectApiName, query, true)) {
    const records = body.records.map(recordOf);
    const named = await withNames(api, references, records);
    write(named.map((record) => [...rowOf(shown.names, record), ...rowOf(expanded, flattened(record))]));
    count += body.records.length;
    if (count === body.records.length && body.total !== undefined)
      output.note(`${counted(body.total, 'record matches', 'records match')}.`);
    if (shown.all) continue;
    if (body.nextCursor) output.more(body.nextCursor);
    break;
  }
  if (!count && output.terminal.pretty) output.note('No records, or none that you may see.');
}

interface Reference {
  readonly field: string;
  readonly objectApiName: string;
}

/** The fields that point to records of one object. */
const referencesOf = (names: readonly string[], description: ObjectDescription | null): Reference[] =>
  names.flatMap((field) => {
    const [objectApiName, other] = (description && fieldOf(description, field)?.referenceTo) ?? [];
    return objectApiName && !other ? [{ field, objectApiName }] : [];
  });

/** Records with names in the place of ids. */
async function withNames(
  api: Api,
  references: readonly Reference[],
  records: readonly DataRecord[],
): Promise<readonly DataRecord[]> {
  let named = records;
  for (const { field, objectApiName } of references) {
    const ids = records.map((record) => valueText(record[field]));
    const names = await namesOf(api, objectApiName, ids);
    named = named.map((record) => ({ ...record, [field]: names.get(valueText(record[field])) ?? record[field] }));
  }
  return named;
}
