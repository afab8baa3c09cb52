/** Common to the commands that change a record: verdicts, duplicates, conflicts of versions. */
import type { Run } from '../command.ts';
import { ApiFailure, EXIT, Failure, usage } from '../failure.ts';
import type { Answer } from '../http/api.ts';
import { plain } from '../output/table.ts';
import { same, valueText } from '../output/values.ts';
import { type DataRecord, recordOf } from './records.ts';

interface Verdict {
  checkOnly: true;
  valid: boolean;
  errors: readonly { field?: string | null; pointer?: string; code?: string; message?: string }[];
  duplicates: readonly DuplicateRule[];
  effects: readonly { kind: string; objectApiName: string; id: string | null; fields: readonly string[] }[];
  approvalRequired: boolean;
}

interface DuplicateRule {
  ruleApiName: string;
  label: string;
  action: string;
  matches: readonly { objectApiName: string; id: string; displayName: string; score: number }[];
  hiddenMatchCount?: number;
}

const isVerdict = (body: unknown): body is Verdict =>
  typeof body === 'object' && body !== null && 'checkOnly' in body && body.checkOnly === true;

/** Prints the answer to a change: what `show` says, or the verdict of a dry run. */
export function showChange(run: Run, answer: Answer<unknown>, show: () => void): void {
  const { body } = answer;
  if (!isVerdict(body)) {
    run.output.result(answer, show);
    return;
  }
  run.output.result(answer, () => showVerdict(run, body));
  if (!body.valid) run.output.endWith(body.errors.length ? EXIT.validation : EXIT.conflict);
}

function showVerdict({ output }: Run, { valid, errors, duplicates, effects, approvalRequired }: Verdict): void {
  output.line(valid ? 'It would be done. Nothing was changed.' : 'It would be refused. Nothing was changed.');
  for (const { field, pointer, message, code } of errors)
    output.line(`  ${plain(field ?? pointer ?? '')}: ${plain(message ?? '')} (${code})`);
  for (const { kind, objectApiName, id, fields } of effects)
    output.line(`  ${kind} ${objectApiName} ${id ?? ''} ${fields.join(', ')}`.trimEnd());
  for (const rule of duplicates) output.line(`  duplicate: ${duplicateText(rule)}`);
  if (approvalRequired) output.line('  It would wait for an approval.');
}

const duplicateText = ({ label, ruleApiName, matches }: DuplicateRule): string =>
  `${plain(label)} (${ruleApiName}): ${matches.map(({ displayName, id }) => `${plain(displayName)} ${id}`).join('; ')}`;

/**
 * Makes a change that rules may hold to be a duplicate. The matches are shown, and a person may confirm; without one the
 * token for --confirm-duplicates is named.
 */
export async function withDuplicates<T>(
  run: Run,
  given: string | undefined,
  change: (confirmation: string | undefined) => Promise<T>,
): Promise<T> {
  let confirmation = given;
  for (;;) {
    try {
      return await change(confirmation);
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.code !== 'DUPLICATE_RULE' || run.output.json) throw error;
      const { rules = [], confirmationToken } = (error.answer.details ?? {}) as {
        rules?: DuplicateRule[];
        confirmationToken?: string;
      };
      showDuplicates(run, rules);
      if (!confirmationToken) throw error.advised('A rule forbids it; it cannot be confirmed.');
      // A second change of the same key would be another request under it.
      const mayAsk = run.output.terminal.interactive && run.options.idempotencyKey === undefined;
      if (!mayAsk || !(await agreed(run, 'Store it all the same?')))
        throw mayAsk
          ? new Failure(error.code, EXIT.conflict, 'Nothing was stored.')
          : error.advised(`To store it all the same, add within 15 minutes: --confirm-duplicates ${confirmationToken}`);
      confirmation = confirmationToken;
    }
  }
}

function showDuplicates({ output }: Run, rules: readonly DuplicateRule[]): void {
  for (const { label, ruleApiName, matches, hiddenMatchCount } of rules) {
    output.note(`${plain(label)} (${ruleApiName}):`);
    for (const { objectApiName, id, displayName, score } of matches)
      output.note(`  ${objectApiName} ${id}  ${plain(displayName)}  ${Math.round(Number(score) * 100)} %`);
    if (hiddenMatchCount) output.note(`  and ${hiddenMatchCount} that you cannot read`);
  }
}

export const agreed = async (run: Run, question: string): Promise<boolean> =>
  /^y(es)?$/i.test(await run.output.terminal.ask(`${question} [y/N] `));

/** The record as it is now, with its ETag. */
export async function readRecord(
  run: Run,
  path: { objectApiName: string; id: string },
): Promise<{
  record: DataRecord;
  etag: string;
}> {
  const api = await run.api();
  const answer = await api.call('data.records.get', { path }, { decimalsAsText: true });
  const etag = answer.headers.get('etag');
  if (!etag) throw usage('The platform gave no ETag for the record.');
  return { record: recordOf(answer.body), etag };
}

/** Fields changed concurrently, except those that every change sets. */
const ALWAYS = new Set(['updatedAt', 'updatedById', 'recordVersion']);

export interface Conflict {
  /** Fields of the change that were concurrently set to another value. */
  overlapping: string[];
}

/** Shows what was read, if that is known, what stands there now and what was to be written. */
export function showConflict({ output }: Run, base: DataRecord | null, theirs: DataRecord, mine: DataRecord): Conflict {
  const changed = Object.keys(theirs).filter(
    (name) => !ALWAYS.has(name) && base !== null && !same(base[name], theirs[name]),
  );
  const names = [...new Set([...Object.keys(mine), ...changed])];
  const text = (record: DataRecord, name: string): string =>
    name in record ? valueText(record[name]) || '(empty)' : '–';
  output.note('Somebody has changed the record in the meantime. Nothing was written.');
  output.noteTable(
    [{ title: 'Field' }, ...(base ? [{ title: 'You started from' }] : []), { title: 'Theirs' }, { title: 'Yours' }],
    names.map((name) => [name, ...(base ? [text(base, name)] : []), text(theirs, name), text(mine, name)]),
  );
  const meant = (name: string): boolean => !sameText(theirs[name], mine[name]);
  return { overlapping: Object.keys(mine).filter((name) => changed.includes(name) && meant(name)) };
}

/** A value written as text on the command line may be a number in the record. */
const sameText = (left: unknown, right: unknown): boolean => same(left, right) || valueText(left) === valueText(right);
