/** `data update`: a change of the version that was read, and the handling of a concurrent change. */
import type { Run } from '../command.ts';
import { ApiFailure } from '../failure.ts';
import { valueText } from '../output/values.ts';
import type { Body } from './assignments.ts';
import { agreed, readRecord, showChange, showConflict, withDuplicates } from './change.ts';
import { type DataRecord, recordOf } from './records.ts';

interface Update {
  path: { objectApiName: string; id: string };
  body: Body;
  ifMatch?: string | undefined;
  confirmDuplicates?: string | undefined;
}

/** Reads the record and its ETag, changes it, and never writes over a change that was not read. */
export async function updateRecord(run: Run, { path, body, ifMatch, confirmDuplicates }: Update): Promise<void> {
  const api = await run.api();
  let base: DataRecord | null = null;
  let etag = ifMatch;
  if (etag === undefined) ({ record: base, etag } = await readRecord(run, path));
  for (;;) {
    const version: string = etag;
    try {
      const answer = await withDuplicates(run, confirmDuplicates, (duplicateConfirmation) =>
        api.call(
          'data.records.update',
          { path, body, headers: { ifMatch: version, duplicateConfirmation } },
          { what: 'The change', decimalsAsText: !run.output.json },
        ),
      );
      showChange(run, answer, () => {
        const pretty = run.output.terminal.pretty;
        const { id, name } = recordOf(answer.body);
        run.output.line(pretty ? `Changed ${path.objectApiName} ${id} ${valueText(name)}`.trimEnd() : valueText(id));
      });
      return;
    } catch (error) {
      const again = await reconciled(run, { path, body, base }, error);
      base = again.record;
      etag = again.etag;
    }
  }
}

/** The record as it is now, when a person wants the same change made to it; otherwise the failure. */
async function reconciled(
  run: Run,
  { path, body, base }: { path: Update['path']; body: Body; base: DataRecord | null },
  error: unknown,
): Promise<{ record: DataRecord; etag: string }> {
  if (!(error instanceof ApiFailure) || error.code !== 'ETAG_MISMATCH' || run.output.json) throw error;
  const now = await readRecord(run, path);
  const { overlapping } = showConflict(run, base, now.record, body);
  // The version of --if-match was read elsewhere: only its reader can tell whether the two changes are compatible.
  if (!base)
    throw error.advised(
      `Read the record again, and leave out --if-match or give its new version: --if-match '${now.etag}'`,
    );
  if (overlapping.length)
    throw error.advised(
      `You both changed ${overlapping.join(', ')}. Decide what is right, and repeat the command: it starts from the record as it is then.`,
    );
  const mayAsk = run.output.terminal.interactive && run.options.idempotencyKey === undefined;
  if (mayAsk && (await agreed(run, 'The two changes touch different fields. Make yours to the record as it is now?')))
    return now;
  throw error.advised(
    'The two changes touch different fields. Repeat the command to make yours to the record as it is now.',
  );
}
