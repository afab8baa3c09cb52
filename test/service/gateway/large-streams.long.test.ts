/**
 * A large content up and down through a gateway of its own process, whose memory stays flat. `LARGE_STREAM_MIB=2048` makes it two
 * gibibytes.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { temporaryFolder } from '../../support/temporary.ts';
import type { Listening } from './streamed-process.ts';
import { answerOf } from './streamed-service.ts';

const MIB = 1024 * 1024;
const CHUNK = Buffer.alloc(4 * MIB, 'The content of a large file. ');
const CHUNKS = Number(process.env['LARGE_STREAM_MIB'] ?? 512) / 4;
/** The garbage collector lets some grow before it looks. */
const GROWTH_MAX_BYTES = 160 * MIB;

function* content(): Generator<Buffer> {
  for (let i = 0; i < CHUNKS; i++) yield CHUNK;
}

describe('The bytes of a large content', function () {
  this.timeout(180_000);
  let gateway: ChildProcess;
  let baseUrl: string;
  let token: string;
  let digest: Buffer;
  const sampled = { highest: 0 };
  let sampling: NodeJS.Timeout;
  const residentBytes = (): number =>
    Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${gateway.pid}/status`, 'latin1'))?.[1]) * 1_024;
  before(async () => {
    const hash = createHash('sha256');
    for (const chunk of content()) hash.update(chunk);
    digest = hash.digest();
    gateway = fork(join(import.meta.dirname, 'streamed-process.ts'), [temporaryFolder('large')]);
    [{ baseUrl, token }] = (await once(gateway, 'message')) as [Listening];
  });
  after(async () => {
    clearInterval(sampling);
    gateway.kill();
    if (gateway.exitCode === null) await once(gateway, 'exit');
  });
  const open = (method: string, path: string, headers: Record<string, string>) =>
    httpRequest(`${baseUrl}/api/v1${path}`, { method, headers: { authorization: `Bearer ${token}`, ...headers } });
  const upload = async (chunks: Iterable<Buffer>, sha256: Buffer): Promise<Record<string, unknown>> => {
    const request = open('POST', '/files', {
      'idempotency-key': 'test-key-1',
      'content-digest': `sha-256=:${sha256.toString('base64')}:`,
    });
    const answered = answerOf(request);
    await pipeline(chunks, request);
    const { status, json } = await answered;
    assert.equal(status, 201, JSON.stringify(json));
    return json;
  };
  const download = async (): Promise<{ bytes: number; sha256: Buffer }> => {
    const request = open('GET', '/files/content', {});
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of response) {
      bytes += chunk.length;
      hash.update(chunk);
    }
    return { bytes, sha256: hash.digest() };
  };

  it('pass up and down with memory that stays flat', async () => {
    const small = [...content()].slice(0, 16);
    await upload(small, createHash('sha256').update(Buffer.concat(small)).digest());
    await download();
    const before = residentBytes();
    sampling = setInterval(() => {
      sampled.highest = Math.max(sampled.highest, residentBytes());
    }, 50);
    const began = performance.now();
    assert.equal((await upload(content(), digest))['bytes'], CHUNKS * CHUNK.length);
    const up = performance.now();
    assert.deepEqual(await download(), { bytes: CHUNKS * CHUNK.length, sha256: digest });
    const growth = sampled.highest - before;
    console.log(
      `      up in ${((up - began) / 1_000).toFixed(1)} s, down in ${((performance.now() - up) / 1_000).toFixed(1)} s, ` +
        `${(before / MIB).toFixed(0)} MiB of memory before, ${(growth / MIB).toFixed(0)} MiB more at most`,
    );
    assert.ok(growth < GROWTH_MAX_BYTES, `${growth} bytes more`);
  });
});
