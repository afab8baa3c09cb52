/** `audit`: who has changed what, and what was refused. */
import { Option } from '@commander-js/extra-typings';
import type { OperationOutput } from '../../contracts/operations.ts';
import { act, addGroup, type Program, type Run } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';
import { namesOf, userIdOf } from '../data/names.ts';
import { usage } from '../failure.ts';
import type { Api, CallInput } from '../http/api.ts';

type Page = OperationOutput<'events.audit.list'>;
type Query = NonNullable<CallInput<'events.audit.list'>['query']>;

const COLUMNS = ['When', 'Who', 'Operation', 'Object', 'Record', 'Outcome', 'Code', 'Channel'];

export function addAudit(program: Program): void {
  addGroup(program, 'audit', 'the audit trail of the tenant')
    .command('list')
    .description('list the audit trail, newest first')
    .option('--user <user>', 'what this user asked for: username, address or id')
    .option('--object <object>', 'of records of this object')
    .option('--record <id>', 'of this record')
    .option('--operation <operationId>', 'of this operation, such as data.records.update')
    .addOption(
      new Option('--outcome <outcome>', 'what became of it').choices(['committed', 'denied', 'failed'] as const),
    )
    .option('--run <runId>', 'under this run of an agent')
    .option('--from <time>', 'not before, such as 2026-11-21T00:00:00Z')
    .option('--to <time>', 'not after')
    .option('--take <number>', 'entries per page', wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .option('--all', 'all pages; with --json a line per entry')
    .option('--csv', 'as CSV with a header')
    .action(
      act(async (run, options) => {
        const { user, object, record, operation, outcome, from, to, take, cursor, all, csv } = options;
        if (csv && run.output.json) throw usage('--csv and --json cannot be combined.');
        const api = await run.api();
        const query: Query = {
          ...(user ? { actorId: await userIdOf(api, user) } : {}),
          ...(object ? { objectApiName: object } : {}),
          ...(record ? { recordId: record } : {}),
          ...(operation ? { operationId: operation } : {}),
          ...(outcome ? { outcome } : {}),
          ...(options.run ? { agentRunId: options.run } : {}),
          ...(from ? { from } : {}),
          ...(to ? { to } : {}),
          ...(take ? { take } : {}),
          ...(cursor ? { cursor } : {}),
        };
        await listEntries(run, api, query, { all: all === true, csv: csv === true });
      }),
    );
}

async function listEntries(
  run: Run,
  api: Api,
  query: Query,
  { all, csv }: { all: boolean; csv: boolean },
): Promise<void> {
  const { output } = run;
  const write = csv ? output.csvWriter(COLUMNS) : output.tableWriter(COLUMNS.map((title) => ({ title })));
  for (let next = query; ; ) {
    const answer = await api.call('events.audit.list', { query: next });
    const { records, nextCursor } = answer.body;
    if (!output.json) write(await rowsOf(api, records));
    else if (all) for (const entry of records) output.data(JSON.stringify(entry));
    else output.result(answer, () => undefined);
    if (nextCursor === null) return;
    next = { ...query, cursor: nextCursor };
    if (all) continue;
    output.more(nextCursor);
    return;
  }
}

async function rowsOf(api: Api, records: Page['records']): Promise<string[][]> {
  const people = await namesOf(
    api,
    'User',
    records.flatMap(({ actor }) => actor.userId ?? []),
  );
  return records.map(({ at, actor, operationId, objectApiName, recordId, outcome, code, channel }) => [
    at,
    actor.userId === null ? 'the platform' : (people.get(actor.userId) ?? actor.userId),
    operationId,
    objectApiName ?? '',
    recordId ?? '',
    outcome,
    code ?? '',
    channel,
  ]);
}
