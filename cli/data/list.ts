/** `data list`: pages of records, one or all of them. */

import { pages } from '../../client/pages.ts';
import { LIMITS } from '../../config/limits.ts';
import type { OperationOutput } from '../../contracts/operations.ts';
import type { Run } from '../command.ts';
import { usage } from '../failure.ts';
import type { Answer, Api, CallInput } from '../http/api.ts';
import { counted } from '../output/values.ts';
import { parse } from './assignments.ts';
import { readConditions } from './conditions.ts';
import { describe, fieldOf, type ObjectDescription } from './objects.ts';
import { columnsOf, defaultFields, expandedNames, flattened, recordOf, rowOf } from './records.ts';

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
}

type Query = NonNullable<CallInput<'data.records.list'>['query']>;
type Page = Answer<OperationOutput<'data.records.list'>>;

export async function listRecords(run: Run, objectApiName: string, options: ListOptions): Promise<void> {
  const api = await run.api();
  const { output } = run;
  if (options.filters !== undefined && options.where) throw usage('--filters and --where exclude each other.');
  if (options.any && !options.where) throw usage('--any says how several --where are joined.');
  const description = output.json && !options.where ? null : await describe(api, objectApiName);
  const sorted = options.sort ? sortOf(options.sort).map(({ id }) => id) : [];
  const names =
    options.fields?.split(',').map((name) => name.trim()) ?? (description ? defaultFields(description, sorted) : []);
  const query = queryOf(options, description, output.json ? undefined : names.join(','));
  if (output.json)
    return options.all ? allAsLines(run, api, objectApiName, query) : onePage(run, api, objectApiName, query);
  await asTable(run, api, objectApiName, query, { names, description, all: options.all === true });
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
  all: boolean;
}

async function asTable(run: Run, api: Api, objectApiName: string, query: Query, shown: Shown): Promise<void> {
  const { output } = run;
  const expanded = expandedNames(query.expand);
  const write = output.tableWriter([...columnsOf(shown.names, shown.description), ...columnsOf(expanded, null)]);
  let count = 0;
  for await (const { body } of pagesOf(api, objectApiName, query, true)) {
    write(
      body.records
        .map(recordOf)
        .map((record) => [...rowOf(shown.names, record), ...rowOf(expanded, flattened(record))]),
    );
    count += body.records.length;
    if (count === body.records.length && body.total !== undefined)
      output.note(`${counted(body.total, 'record matches', 'records match')}.`);
    if (shown.all) continue;
    if (body.nextCursor)
      // On a terminal the cursor would be most of what one sees.
      output.note(
        output.terminal.pretty ? 'There are more: --all' : `There are more: --all, or --cursor ${body.nextCursor}`,
      );
    break;
  }
  if (!count && output.terminal.pretty) output.note('No records, or none that you may see.');
}
