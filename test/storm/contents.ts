/** Files and bulk jobs during a storm: contents that are stored, read back and deleted, and rows that are imported. */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer, Client, Traffic } from './client.ts';
import { type Ledger, Unexpected } from './ledger.ts';
import type { Random } from './random.ts';

/** Of all files: stored in chunks. */
const IN_CHUNKS = 0.3;
const CHUNK_BYTES = 1024 * 1024;
/** A job may take so long, with the faults around it. */
const JOB_MS = 150_000;
const JOB_ENDED = ['COMPLETED', 'FAILED', 'CANCELED'];

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
const digest = (bytes: Uint8Array): string => `sha-256=:${sha256(bytes).toString('base64')}:`;

export class Contents {
  readonly #traffic: Traffic;
  readonly #ledger: Ledger;
  readonly #client: Client;
  readonly #marker: string;
  #number = 0;

  constructor(traffic: Traffic, ledger: Ledger, client: Client, marker: string) {
    this.#traffic = traffic;
    this.#ledger = ledger;
    this.#client = client;
    this.#marker = marker;
  }

  /** A file that is attached to one of the records, read back, and deleted now and then. */
  async storeFile(records: readonly string[], random: Random): Promise<void> {
    const recordId = random.pick(records);
    const isLong = random.chance(IN_CHUNKS);
    const line = `${this.#marker} file ${++this.#number} ${random.next()}\n`;
    const bytes = Buffer.from(line.repeat(isLong ? Math.ceil((CHUNK_BYTES * 1.5) / line.length) : 20));
    const made = isLong ? await this.#upload(recordId, bytes) : await this.#send(recordId, bytes);
    if (!made) return;
    const { fileId } = made.body;
    const content = await this.#client.get(`/files/${fileId}/content`);
    this.#traffic.violations.equal('files', `the content of ${fileId}`, content.text, bytes.toString());
    if (random.chance(0.4)) return;
    await this.#ledger.carryOut(
      this.#client,
      'delete a file',
      {
        method: 'DELETE',
        path: `/files/${fileId}`,
        options: { etag: made.headers.get('etag') ?? '' },
        expected: [200],
      },
      () => {
        this.#ledger.files.delete(fileId);
      },
    );
  }

  /** null: the client was gone before it had an answer. */
  #send(recordId: string, bytes: Uint8Array): Promise<Answer | null> {
    const query = new URLSearchParams({ objectApiName: 'Account', recordId });
    const headers = { 'content-type': 'text/plain', 'x-file-name': 'storm.txt', 'content-digest': digest(bytes) };
    return this.#ledger.tryOut(
      this.#client,
      'store a file',
      { method: 'POST', path: `/files?${query}`, body: bytes, options: { headers }, expected: [201] },
      this.#keep(recordId, bytes),
    );
  }

  async #upload(recordId: string, bytes: Uint8Array): Promise<Answer> {
    const attachTo = { objectApiName: 'Account', recordId };
    const upload = await this.#ledger.carryOut(this.#client, 'begin an upload', {
      method: 'POST',
      path: '/files/uploads',
      body: { name: 'storm.txt', contentType: 'text/plain', size: bytes.length, attachTo },
      expected: [201],
    });
    const path = `/files/uploads/${upload.body.uploadId}`;
    for (let offset = 0; offset < bytes.length; ) {
      const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) };
      const chunk = bytes.subarray(offset, offset + CHUNK_BYTES);
      const { status, body, text, ...answer } = await this.#client.send('PATCH', path, chunk, { headers });
      // An earlier attempt may have arrived, though its answer did not.
      if (status === 204) offset = Number(answer.headers.get('upload-offset'));
      else if (status === 409) offset = body.details.offset;
      else throw new Unexpected(`A chunk: ${status} ${text}`);
    }
    return this.#ledger.carryOut(
      this.#client,
      'complete an upload',
      {
        method: 'POST',
        path: `${path}/complete`,
        body: { sha256: sha256(bytes).toString('hex') },
        expected: [201],
      },
      this.#keep(recordId, bytes),
    );
  }

  #keep(recordId: string, bytes: Uint8Array): (answer: Answer) => void {
    return ({ body }) => void this.#ledger.files.set(body.fileId, { recordId, sha256: sha256(bytes).toString('hex') });
  }

  /** A job whose rows each become one record, whatever happens meanwhile. */
  async importRows(random: Random): Promise<void> {
    const client = this.#client;
    const job = ++this.#number;
    const rows = Array.from({ length: random.integer(20, 400) }, (_, i) => ({
      name: `${this.#marker} job ${job} row ${i + 1}`,
      description: `Row ${i + 1}`,
    }));
    const csv = Buffer.from(
      ['name,description', ...rows.map((row) => `${row.name},${row.description}`), ''].join('\n'),
    );
    const { body } = await this.#ledger.carryOut(client, 'create a job', {
      method: 'POST',
      path: '/bulk/jobs',
      body: { operation: 'create', objectApiName: 'Account', format: 'csv', duplicatePolicy: 'report' },
      expected: [201],
    });
    const path = `/bulk/jobs/${body.jobId}`;
    const headers = { 'content-type': 'text/csv', 'content-digest': digest(csv) };
    const part = { method: 'PUT', path: `${path}/parts/1`, body: csv, options: { headers }, expected: [201] };
    await this.#ledger.carryOut(client, 'upload a part', part);
    await this.#ledger.carryOut(client, 'start a job', { method: 'POST', path: `${path}/start`, expected: [202] });
    await this.#ended(path);
    const outcomes: { rowNumber: number; outcome: string; id: string; etag: string; errors: unknown }[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Answer = await client.get(
        `${path}/results?take=200${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      if (page.status !== 200) throw new Unexpected(`Results of ${path}: ${page.status} ${page.text}`);
      outcomes.push(...page.body.records);
      cursor = page.body.nextCursor;
    }
    this.#traffic.violations.equal('jobs', `rows of ${path} with an outcome`, outcomes.length, rows.length);
    for (const { rowNumber, outcome, id, etag, errors } of outcomes) {
      const fields = rows[rowNumber - 1];
      if (outcome !== 'succeeded' || !fields)
        this.#traffic.violations.add({
          oracle: 'jobs',
          what: `row ${rowNumber} of ${path}`,
          server: { outcome, errors },
        });
      else
        this.#ledger.records.set(id, {
          ...{ id, object: 'Account', tenant: client.tenant, version: 1, etag, live: true },
          fields,
        });
    }
    await this.#ledger.carryOut(client, 'delete a job', { method: 'DELETE', path, expected: [204] });
  }

  async #ended(path: string): Promise<void> {
    for (const end = performance.now() + JOB_MS; ; await pause(500)) {
      const { body, text } = await this.#client.get(path);
      if (body.state === 'COMPLETED') return;
      if (!JOB_ENDED.includes(body.state) && performance.now() < end) continue;
      this.#traffic.violations.add({ oracle: 'jobs', what: `${path} has not completed`, server: text });
      throw new Unexpected(text);
    }
  }
}

/** The files of each record are those of the ledger, with their contents. */
export async function filesAsInLedger({ violations }: Traffic, ledger: Ledger, client: Client): Promise<number> {
  for (const recordId of ledger.counters.keys()) {
    const there = new Map<string, string>();
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ objectApiName: 'Account', recordId, take: '100', ...(cursor && { cursor }) });
      const { status, body, text }: Answer = await client.get(`/files?${query}`);
      if (status !== 200) throw new Error(`Files of ${recordId}: ${status} ${text}`);
      for (const file of body.records) there.set(file.fileId, file.sha256);
      cursor = body.nextCursor;
    }
    const kept = [...ledger.files].filter(([, file]) => file.recordId === recordId);
    const sorted = (files: Iterable<[string, string]>) => Object.fromEntries([...files].sort());
    violations.equal(
      'files',
      `those of the record ${recordId}`,
      sorted(there),
      sorted(kept.map(([fileId, file]): [string, string] => [fileId, file.sha256])),
    );
  }
  for (const [fileId, file] of ledger.files) {
    const { text } = await client.get(`/files/${fileId}/content`);
    violations.equal('files', `the content of ${fileId}`, sha256(Buffer.from(text)).toString('hex'), file.sha256);
  }
  return ledger.files.size;
}
