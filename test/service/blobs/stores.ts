/** What holds for every store of blobs. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import { CheckedBytes } from '../../../mixins/blobs/checked-bytes.ts';

const CHUNK_BYTES = 64 * 1024;
/** Less than a part of S3, one exactly, and several. */
const SIZES = [0, 1, 5 * 1024 * 1024, 17 * 1024 * 1024 + 3];

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

export function describeStore(open: () => Blobs): void {
  let blobs: Blobs;
  const newKey = (): string => blobs.newKey('tenant-1');
  before(() => {
    blobs = open();
  });
  const isMissing = (key: string) =>
    assert.rejects(
      blobs.read(key, { from: 0, bytes: 1 }),
      (error) =>
        error instanceof PlatformError &&
        error.code === 'SERVICE_UNAVAILABLE' &&
        error.cause instanceof Error &&
        error.cause.message === `There is no blob ${key}.`,
    );

  for (const size of SIZES)
    it(`gives back ${size} bytes, in whole and in part`, async () => {
      const key = newKey();
      const bytes = randomBytes(size);
      await blobs.write(key, chunksOf(bytes));
      if (size === 0) return;
      assert.ok((await buffer(await blobs.read(key, { from: 0, bytes: size }))).equals(bytes));
      const from = Math.floor(size / 2);
      assert.ok((await buffer(await blobs.read(key, { from, bytes: size - from }))).equals(bytes.subarray(from)));
      assert.ok((await buffer(await blobs.read(key, { from, bytes: 1 }))).equals(bytes.subarray(from, from + 1)));
    });

  it('shows nothing of a blob before it is complete, nor of one whose source fails', async () => {
    const key = newKey();
    const source = async function* (fails: boolean): AsyncGenerator<Buffer> {
      yield* chunksOf(randomBytes(12 * 1024 * 1024));
      await isMissing(key);
      if (fails) throw new Error('The client has gone.');
    };
    await assert.rejects(blobs.write(key, source(true)), /The client has gone/);
    await isMissing(key);
    await blobs.write(key, source(false));
    await blobs.read(key, { from: 0, bytes: 1 });
  });

  it('keeps nothing that is too long or not as declared', async () => {
    const bytes = randomBytes(200_000);
    const key = newKey();
    const write = (declared: string | null, maxBytes: number): Promise<void> =>
      blobs.write(key, new CheckedBytes(chunksOf(bytes), { maxBytes, sha256: declared }));
    const refused = (code: string) => (error: unknown) => error instanceof PlatformError && error.code === code;
    await assert.rejects(write(sha256(randomBytes(3)), bytes.length), refused('UPLOAD_CHECKSUM_MISMATCH'));
    await assert.rejects(write(null, bytes.length - 1), refused('REQUEST_TOO_LARGE'));
    await isMissing(key);
    const checked = new CheckedBytes(chunksOf(bytes), { maxBytes: bytes.length, sha256: sha256(bytes) });
    await blobs.write(key, checked);
    assert.deepEqual([checked.bytes, checked.sha256], [bytes.length, sha256(bytes)]);
  });

  it('takes from its source no faster than it stores', async () => {
    let ahead = 0;
    const source = async function* (): AsyncGenerator<Buffer> {
      for (let i = 0; i < 50; i++) {
        assert.equal(ahead++, 0, 'asked for the next bytes before the last ones were taken');
        yield Buffer.alloc(CHUNK_BYTES);
        ahead--;
        await pause(0);
      }
    };
    await blobs.write(newKey(), source());
  });

  it('removes blobs, also those that there are not', async () => {
    const key = newKey();
    await blobs.write(key, chunksOf(Buffer.from('x')));
    await blobs.remove(key);
    await isMissing(key);
    await blobs.remove(key);
  });

  it('takes no key that could mean another place', async () => {
    for (const key of [
      '',
      '/a',
      'a/',
      '../a',
      'a/../b',
      'a//b',
      '.incomplete/a',
      'A',
      'a\0',
      'a\\b',
      'a?b',
      `a/${'x'.repeat(200)}`,
    ]) {
      await assert.rejects(blobs.write(key, chunksOf(Buffer.from('x'))), /is not a valid blob key/, key);
      await assert.rejects(blobs.read(key, { from: 0, bytes: 1 }), /is not a valid blob key/, key);
      await assert.rejects(blobs.remove(key), /is not a valid blob key/, key);
    }
  });
}
