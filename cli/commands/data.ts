/** `data`: the records of an object. */
import { LIMITS } from '../../lib/limits.ts';
import { exportRecords } from '../bulk/export.ts';
import { importFile } from '../bulk/import.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { assignedTexts, needsTypes, readBody, wholeNumber } from '../data/assignments.ts';
import { agreed, readRecord, showChange, withDuplicates } from '../data/change.ts';
import { showHistory } from '../data/history.ts';
import { listRecords } from '../data/list.ts';
import { userIdOf } from '../data/names.ts';
import { describe, fieldOf } from '../data/objects.ts';
import { type DataRecord, recordOf, showRecord } from '../data/records.ts';
import { updateRecord } from '../data/update.ts';
import { usage } from '../failure.ts';
import type { Api } from '../http/api.ts';
import { valueText } from '../output/values.ts';
import { addShares } from './shares.ts';

const collect = (value: string, before: string[] = []): string[] => [...before, value];

const DATA = 'fields as JSON: {…}, @file, or - for standard input';
const ASSIGNMENTS = 'field=text, field= to clear it, field:=JSON';
const EXPAND = "references with fields of what they point to, such as 'accountId(name,city),ownerId(displayName)'";
const CONFIRM = 'store it although similar records exist; the token comes with their list';

/** The command line's values as a body; asks for the types of fields only where a text needs one. */
export async function bodyOf(
  api: Api,
  objectApiName: string,
  assignments: readonly string[],
  data: string | undefined,
): Promise<Record<string, unknown>> {
  if (!assignments.length && data === undefined) throw usage('Nothing to write.', `Give ${ASSIGNMENTS}, or --data.`);
  const description = needsTypes(assignments) ? await describe(api, objectApiName) : null;
  const fields = (name: string) => (description ? fieldOf(description, name) : undefined);
  const body = await readBody(assignments, data, fields);
  // A user who was written as a text is named by username; JSON is sent as it is.
  for (const name of assignedTexts(assignments)) {
    const value = body[name];
    if (typeof value === 'string' && fields(name)?.referenceTo.includes('User'))
      body[name] = await userIdOf(api, value);
  }
  return body;
}

export function addData(program: Program): void {
  const data = addGroup(program, 'data', 'records of an object');
  addReads(data);
  addWrites(data);
  addRemovals(data);
  addMany(data);
  addShares(data);
}

function addReads(data: Group): void {
  data
    .command('list')
    .description('list records')
    .argument('<object>')
    .option('--fields <names>', 'fields to show, separated by commas')
    .option('--expand <references>', EXPAND)
    .option('--where <condition>', 'such as city=Berlin, "creditLimit>=1000", name~acme; all must hold', collect)
    .option('--any', 'one of the conditions is enough')
    .option('--filters <json>', 'filters as the API takes them')
    .option('--sort <fields>', 'up to two fields, separated by commas; - before a name turns the order')
    .option('--search <words>', 'words that begin words of the record')
    .option('--search-fields <names>', 'fields to search, separated by commas')
    .option('--take <number>', `records per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .option('--total', 'count all matching records')
    .option('--all', 'all pages; with --json a line per record')
    .option('--csv', 'as CSV with a header')
    .action(act((run, objectApiName, options) => listRecords(run, objectApiName, options)));
  data
    .command('get')
    .description('show a record')
    .argument('<object>')
    .argument('<id>')
    .option('--fields <names>', 'fields to show, separated by commas')
    .option('--expand <references>', EXPAND)
    .action(
      act(async (run, objectApiName, id, { fields, expand }) => {
        const answer = await (await run.api()).call(
          'data.records.get',
          { path: { objectApiName, id }, query: { ...(fields ? { fields } : {}), ...(expand ? { expand } : {}) } },
          { decimalsAsText: !run.output.json },
        );
        run.output.result(answer, () => showRecord(run, recordOf(answer.body)));
      }),
    );
  data
    .command('history')
    .description('list the changes of a record, newest first')
    .argument('<object>')
    .argument('<id>')
    .option('--take <number>', 'changes per page', wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, objectApiName, id, { take, cursor }) => {
        const api = await run.api();
        const answer = await api.call('data.history.list', {
          path: { objectApiName, id },
          query: { ...(take ? { take } : {}), ...(cursor ? { cursor } : {}) },
        });
        if (run.output.json) run.output.result(answer, () => undefined);
        else await showHistory(run, api, objectApiName, answer.body);
      }),
    );
  data
    .command('transitions')
    .description('list what can be done with a record')
    .argument('<object>')
    .argument('<id>')
    .action(
      act(async (run, objectApiName, id) => {
        const answer = await (await run.api()).call('data.transitions.list', { path: { objectApiName, id } });
        run.output.result(answer, () => {
          if (run.output.terminal.pretty && answer.body.currentState)
            run.output.line(`state: ${answer.body.currentState}`);
          run.output.table(
            [
              { title: 'Key', whole: true },
              { title: 'Label' },
              { title: 'To' },
              { title: 'Possible' },
              { title: 'Why not' },
            ],
            answer.body.records.map(({ transitionKey, label, toState, available, unavailableReasons }) => [
              transitionKey,
              label,
              toState ?? '',
              available ? 'yes' : 'no',
              unavailableReasons.map(({ message }) => message).join(' '),
            ]),
          );
        });
      }),
    );
}

function addWrites(data: Group): void {
  data
    .command('create')
    .description('create a record')
    .argument('<object>')
    .argument('[assignments...]', ASSIGNMENTS)
    .option('--data <json>', DATA)
    .option('--confirm-duplicates <token>', CONFIRM)
    .action(
      act(async (run, objectApiName, assignments, options) => {
        const api = await run.api();
        const body = await bodyOf(api, objectApiName, assignments, options.data);
        const answer = await withDuplicates(run, options.confirmDuplicates, (duplicateConfirmation) =>
          api.call(
            'data.records.create',
            { path: { objectApiName }, body, headers: { duplicateConfirmation } },
            { what: 'The creation', decimalsAsText: !run.output.json },
          ),
        );
        showChange(run, answer, () => changed(run, 'Created', objectApiName, recordOf(answer.body)));
      }),
    );
  data
    .command('update')
    .description('change fields of a record; never over a concurrent change')
    .argument('<object>')
    .argument('<id>')
    .argument('[assignments...]', ASSIGNMENTS)
    .option('--data <json>', DATA)
    .option('--if-match <etag>', 'change this version only (default: the present one)')
    .option('--confirm-duplicates <token>', CONFIRM)
    .action(
      act(async (run, objectApiName, id, assignments, options) => {
        const api = await run.api();
        const body = await bodyOf(api, objectApiName, assignments, options.data);
        await updateRecord(run, { path: { objectApiName, id }, body, ...options });
      }),
    );
  data
    .command('upsert')
    .description('create the record with this external id, or change it')
    .argument('<object>')
    .argument('<field>', 'a field that is an external id')
    .argument('<value>')
    .argument('[assignments...]', ASSIGNMENTS)
    .option('--data <json>', DATA)
    .option('--create-only', 'fail when there is one')
    .option('--confirm-duplicates <token>', CONFIRM)
    .action(
      act(async (run, objectApiName, externalIdField, value, assignments, options) => {
        const api = await run.api();
        const body = await bodyOf(api, objectApiName, assignments, options.data);
        const answer = await withDuplicates(run, options.confirmDuplicates, (duplicateConfirmation) =>
          api.call(
            'data.records.upsert',
            {
              path: { objectApiName, externalIdField, value },
              body,
              headers: { duplicateConfirmation, ...(options.createOnly ? { ifNoneMatch: '*' } : {}) },
            },
            { what: 'The upsert', decimalsAsText: !run.output.json },
          ),
        );
        showChange(run, answer, () =>
          changed(run, answer.status === 201 ? 'Created' : 'Changed', objectApiName, recordOf(answer.body)),
        );
      }),
    );
  data
    .command('transition')
    .description('execute a transition or action of a record')
    .argument('<object>')
    .argument('<id>')
    .argument('<key>', 'of `erp data transitions`')
    .argument('[input...]', 'what it asks for: name=text, name:=JSON')
    .option('--input <json>', `all of the input, ${DATA}`)
    .option('--comment <text>', 'why; it stays in the history')
    .option('--if-match <etag>', 'this version only (default: the present one)')
    .option('--confirm-duplicates <token>', CONFIRM)
    .action(
      act(async (run, objectApiName, id, transitionKey, assignments, options) => {
        const api = await run.api();
        const { comment } = options;
        const input = await readBody(assignments, options.input, () => undefined);
        const path = { objectApiName, id };
        const ifMatch = options.ifMatch ?? (await api.call('data.transitions.list', { path })).body.etag;
        const answer = await withDuplicates(run, options.confirmDuplicates, (duplicateConfirmation) =>
          api.call(
            'data.transitions.execute',
            {
              path: { ...path, transitionKey },
              body: { ...(Object.keys(input).length ? { input } : {}), ...(comment ? { comment } : {}) },
              headers: { ifMatch, duplicateConfirmation },
            },
            { what: 'The transition', decimalsAsText: !run.output.json },
          ),
        );
        showChange(run, answer, () => {
          const { fromState, toState, sideEffects } = answer.body;
          const states = toState === null ? '' : `: ${fromState ?? '–'} → ${toState}`;
          run.output.line(
            run.output.terminal.pretty ? `Executed ${transitionKey}${states}` : (toState ?? transitionKey),
          );
          for (const effect of sideEffects) run.output.note(`  ${effect.kind} ${effect.objectApiName} ${effect.id}`);
        });
      }),
    );
}

function addMany(data: Group): void {
  data
    .command('import')
    .description('write the rows of a CSV or NDJSON file; with --dry-run, say what would be refused')
    .argument('<file>')
    .requiredOption('--object <object>', 'object of the records')
    .option(
      '--operation <operation>',
      'create, update, upsert or delete (default: create, or upsert with --external-id)',
    )
    .option('--external-id <field>', 'the field by which an upsert finds records')
    .option('--map <file>', 'YAML with a line "column: field" for each column with another name than its field')
    .option('--delimiter <character>', 'between cells: , ; | or a tab (default: ,)')
    .option('--locale <tag>', 'how numbers and dates are written, such as de-DE')
    .option('--all-or-none', 'stop at the first row that fails, with what is committed by then')
    .option('--last-write-wins', 'update and delete without the versions of the records')
    .option('--report-duplicates', 'store rows that a rule warns of')
    .option('--failed <file>', 'where the rows go that were not written, to be mended and imported')
    .action(act(importFile));
  data
    .command('export')
    .description('write records to a file')
    .argument('<object>')
    .requiredOption('--output <file>', 'name.csv or name.ndjson, with .gz behind it to compress')
    .option('--fields <names>', 'fields, separated by commas')
    .option('--where <condition>', 'such as city=Berlin, as for `data list`; all must hold', collect)
    .option('--filters <json>', 'filters as the API takes them')
    .option('--sort <fields>', 'up to two fields, separated by commas; - before a name turns the order')
    .option('--delimiter <character>', 'between cells of CSV (default: ,)')
    .action(act(exportRecords));
}

function addRemovals(data: Group): void {
  data
    .command('delete')
    .description('move a record to the recycle bin, with what depends on it')
    .argument('<object>')
    .argument('<id>')
    .option('--yes', 'do not ask')
    .option('--if-match <etag>', 'this version only (default: the present one)')
    .action(
      act(async (run, objectApiName, id, options) => {
        const api = await run.api();
        const path = { objectApiName, id };
        const found = options.ifMatch === undefined ? await readRecord(run, path) : null;
        const ask = run.output.terminal.interactive && !options.yes && !run.options.dryRun;
        const name = valueText(found?.record['name']);
        if (ask && !(await agreed(run, `Delete ${objectApiName} ${name || id}?`))) throw usage('Nothing was deleted.');
        const answer = await api.call(
          'data.records.delete',
          { path, headers: { ifMatch: options.ifMatch ?? found?.etag } },
          { what: 'The deletion' },
        );
        showChange(run, answer, () => {
          const { restorableUntil, cascaded } = answer.body;
          run.output.line(`Deleted ${objectApiName} ${id}; it can be restored until ${restorableUntil}.`);
          for (const { objectApiName: other, count } of cascaded) run.output.line(`  and ${count} ${other}`);
        });
      }),
    );
  data
    .command('restore')
    .description('bring a deleted record back')
    .argument('<object>')
    .argument('<id>')
    .action(
      act(async (run, objectApiName, id) => {
        const answer = await (await run.api()).call(
          'data.records.restore',
          { path: { objectApiName, id } },
          { what: 'The restoration' },
        );
        showChange(run, answer, () => changed(run, 'Restored', objectApiName, recordOf(answer.body)));
      }),
    );
}

/** A sentence on a terminal, otherwise the id alone, for the next command. */
export function changed(run: Run, what: string, object: string, record: DataRecord): void {
  const id = valueText(record['id']);
  run.output.line(run.output.terminal.pretty ? `${what} ${object} ${id} ${valueText(record['name'])}`.trimEnd() : id);
}
