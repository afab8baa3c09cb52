/** `files`: files and the records that they belong to. */
import { open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { OperationOutput } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';
import { parseReference, RECORD } from '../data/references.ts';
import { ApiFailure, EXIT, Failure, usage } from '../failure.ts';
import { download, measure, typeOf } from '../files/content.ts';
import type { Answer } from '../http/api.ts';
import { openUnfinished } from '../http/unfinished.ts';
import { onInterrupt } from '../output/interrupt.ts';
import { openProgress } from '../output/progress.ts';
import { plain } from '../output/table.ts';

type File = OperationOutput<'files.items.get'>;

export function addFiles(program: Program): void {
  const files = addGroup(program, 'files', 'files, and the records that they belong to');
  addReads(files);
  addWrites(files);
}

/** A chunk that broke off is sent again as a whole. */
const CHUNK_BYTES = 8 * 1024 * 1024;

function addReads(files: Group): void {
  files
    .command('list')
    .description('list the files of a record, or those that you have stored')
    .option('--record <record>', RECORD)
    .option('--take <number>', `files per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { record, take, cursor }) => {
        const answer = await (await run.api()).call('files.items.list', {
          query: {
            ...(record === undefined ? {} : parseReference(record)),
            ...(take ? { take } : {}),
            ...(cursor ? { cursor } : {}),
          },
        });
        run.output.result(answer, () => {
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'Name' },
              { title: 'Type' },
              { title: 'Bytes' },
              { title: 'State' },
            ],
            answer.body.records.map(({ fileId, name, contentType, size, state }) => [
              fileId,
              name,
              contentType,
              String(size),
              state,
            ]),
          );
          if (answer.body.nextCursor) run.output.note(`There are more: --cursor ${answer.body.nextCursor}`);
        });
      }),
    );
  files
    .command('show')
    .description('show what is known of a file')
    .argument('<id>')
    .action(
      act(async (run, fileId) => show(run, await (await run.api()).call('files.items.get', { path: { fileId } }))),
    );
  files
    .command('get')
    .description('download a file; an interrupted download goes on')
    .argument('<id>')
    .option('--output <path>', 'file or - for standard output (default: its name, in this folder)')
    .action(act((run, fileId, { output }) => get(run, fileId, output)));
}

async function get(run: Run, fileId: string, output: string | undefined): Promise<void> {
  const api = await run.api();
  const path = { fileId };
  if (output === '-') {
    const response = await api.content('files.content.get', { path }, 0);
    for await (const chunk of response.body ?? []) process.stdout.write(chunk);
    return;
  }
  const known = await api.call('files.items.get', { path });
  // A name of the platform holds no slash; this one is chosen by somebody else.
  const target = output ?? join('.', basename(known.body.name));
  const progress = openProgress(run.output, { quiet: true });
  const restore = onInterrupt(() => run.output.note('\nStopped. The same command goes on with the download.'));
  try {
    const bytes = await download({
      ask: (from) => api.content('files.content.get', { path }, from),
      path: target,
      what: known.body.name,
      progress,
    });
    progress.end();
    run.output.result(known, () => run.output.line(`${target}\t${bytes}`));
  } finally {
    progress.end();
    restore();
  }
}

function addWrites(files: Group): void {
  files
    .command('put')
    .description('store a file; an interrupted upload goes on')
    .argument('<path>')
    .option('--record <record>', `attach it to a record: ${RECORD}`)
    .option('--field <field>', 'write it into this field of the record')
    .option('--name <name>', 'name of the file (default: as here)')
    .option('--type <type>', 'media type of a text (default: by the ending of the name)')
    .action(act(put));
  files
    .command('attach')
    .description('attach a file to a record')
    .argument('<id>')
    .argument('<record>', RECORD)
    .action(act((run, fileId, record) => change(run, fileId, { attachTo: parseReference(record) })));
  files
    .command('detach')
    .description('detach a file from a record')
    .argument('<id>')
    .argument('<record>', RECORD)
    .action(act((run, fileId, record) => change(run, fileId, { detachFrom: parseReference(record) })));
  files
    .command('delete')
    .description('delete a file; it cannot be restored')
    .argument('<id>')
    .action(
      act(async (run, fileId) => {
        const api = await run.api();
        const { version } = (await api.call('files.items.get', { path: { fileId } })).body;
        const answer = await api.call('files.items.delete', { path: { fileId }, headers: { ifMatch: `"${version}"` } });
        run.output.result(answer, () => run.output.line(run.output.terminal.pretty ? `Deleted ${fileId}` : fileId));
      }),
    );
}

type Target = { objectApiName: string; recordId: string } | undefined;

async function change(run: Run, fileId: string, body: { attachTo?: Target; detachFrom?: Target }): Promise<void> {
  const api = await run.api();
  const { version } = (await api.call('files.items.get', { path: { fileId } })).body;
  show(
    run,
    await api.call('files.items.update', {
      path: { fileId },
      body: {
        ...(body.attachTo ? { attachTo: body.attachTo } : {}),
        ...(body.detachFrom ? { detachFrom: body.detachFrom } : {}),
      },
      headers: { ifMatch: `"${version}"` },
    }),
  );
}

interface PutOptions {
  record?: string | undefined;
  field?: string | undefined;
  name?: string | undefined;
  type?: string | undefined;
}

async function put(run: Run, path: string, { record, field, name = basename(path), type }: PutOptions): Promise<void> {
  if (field !== undefined && record === undefined) throw usage('--field needs --record.');
  const api = await run.api();
  const attachTo =
    record === undefined ? undefined : { ...parseReference(record), ...(field === undefined ? {} : { field }) };
  const { size, sha256 } = await measure(path);
  const contentType = type ?? typeOf(path);
  const file = await open(path);
  const progress = openProgress(run.output, { quiet: true });
  const restore = onInterrupt(() => run.output.note('\nStopped. The same command goes on with the upload.'));
  try {
    const unfinished = await openUnfinished(run, ['upload', sha256, name, JSON.stringify(attachTo ?? null)]);
    let uploadId = await known(unfinished.found?.['uploadId']);
    if (uploadId === null) {
      const body = { name, contentType, size, sha256, ...(attachTo ? { attachTo } : {}) };
      uploadId = (await api.call('files.uploads.create', { body }, { what: 'The upload' })).body.uploadId;
      await unfinished.keep({ uploadId });
    }
    const upload = { uploadId };
    let { offset } = (await api.call('files.uploads.head', { path: upload })).body;
    while (offset < size) {
      progress.update(name, offset, size);
      const bytes = new Uint8Array(Math.min(CHUNK_BYTES, size - offset));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, offset);
      if (bytesRead < bytes.length) throw usage(`${path} has changed while it was read.`);
      const content = { type: 'application/offset+octet-stream', bytes };
      await api.call('files.uploads.append', { path: upload, headers: { uploadOffset: offset } }, { content });
      offset += bytes.length;
    }
    const answer = await api.call('files.uploads.complete', { path: upload, body: { sha256 } }, { what: 'The file' });
    await unfinished.forget();
    progress.end();
    show(run, answer);
  } finally {
    progress.end();
    restore();
    await file.close();
  }

  async function known(uploadId: unknown): Promise<string | null> {
    if (typeof uploadId !== 'string') return null;
    try {
      await api.call('files.uploads.head', { path: { uploadId } });
      return uploadId;
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 404) return null;
      throw error;
    }
  }
}

function show(run: Run, answer: Answer<File>): void {
  const { fileId, name, contentType, size, sha256, state, attachedTo } = answer.body;
  run.output.result(answer, () => {
    if (!run.output.terminal.pretty) return run.output.line(fileId);
    run.output.pairs([
      ['id', fileId],
      ['name', name],
      ['type', contentType],
      ['bytes', String(size)],
      ['sha256', sha256],
      ['state', state],
      ...attachedTo.map(({ objectApiName, recordId }): [string, string] => ['record', `${objectApiName}/${recordId}`]),
    ]);
  });
  if (state === 'quarantined')
    throw new Failure('FILE_QUARANTINED', EXIT.validation, `${plain(name)} was found to be malicious.`);
}
