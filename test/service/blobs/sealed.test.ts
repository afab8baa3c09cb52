/** Encrypted blobs: stored as nobody understands them, read in any range, and by no key but theirs. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { CountedBlobs } from '../../../mixins/blobs/counted.ts';
import { FolderBlobs } from '../../../mixins/blobs/folder.ts';
import { SealedBlobs } from '../../../mixins/blobs/sealed.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { describeStore } from './stores.ts';

const [OLD, NEW] = ['an old key of at least 32 characters', 'a new key of at least 32 characters'];
const BLOCK = 64 * 1024;
const SEALED = BLOCK + 28;

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('Encrypted blobs', function () {
  this.timeout(60_000);
  describeStore(() => new CountedBlobs(new SealedBlobs(new FolderBlobs(temporaryFolder('sealed')), [NEW])));

  const folder = temporaryFolder('sealed');
  const plain = new FolderBlobs(folder);
  const blobs = new SealedBlobs(plain, [NEW, OLD]);
  const store = async (bytes: Buffer, by: SealedBlobs | FolderBlobs = blobs, size = 10_000): Promise<string> => {
    const key = by.newKey('t');
    await by.write(key, inChunks(bytes, size));
    return key;
  };
  const read = async (key: string, from: number, bytes: number, by: SealedBlobs = blobs): Promise<Buffer> =>
    buffer(await by.read(key, { from, bytes }));

  it('are read in any range', async () => {
    const sizes = [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 17];
    const contents = await Promise.all(
      sizes.map(async (size) => {
        const bytes = randomBytes(size);
        return { bytes, key: await store(bytes, blobs, 1 + (size % 70_000)) };
      }),
    );
    const range = fc.tuple(fc.constantFrom(...contents), fc.nat(), fc.nat());
    await fc.assert(
      fc.asyncProperty(range, async ([{ bytes, key }, a, b]) => {
        const from = a % bytes.length;
        const length = 1 + (b % (bytes.length - from));
        assert.ok((await read(key, from, length)).equals(bytes.subarray(from, from + length)));
      }),
      { numRuns: 300 },
    );
  });

  it('show nothing of what they hold', async () => {
    const text = Buffer.from('the same text again and again, '.repeat(10_000));
    const [one, other] = await Promise.all([store(text), store(text)]).then((keys) =>
      keys.map((key) => readFileSync(join(folder, key))),
    );
    assert.ok(!one!.includes('the same text'));
    assert.equal(one!.length, text.length + 28 * Math.ceil(text.length / BLOCK));
    assert.ok(!one!.subarray(12, 1_000).equals(other!.subarray(12, 1_000)));
  });

  it('stay readable when the key is replaced, and those from before there was one', async () => {
    const bytes = randomBytes(100_000);
    const key = await store(bytes, new SealedBlobs(plain, [OLD]));
    assert.ok((await read(key, 0, bytes.length)).equals(bytes));
    const open = await store(bytes, plain);
    assert.ok((await read(open, 0, bytes.length)).equals(bytes));
    await assert.rejects(
      read(key, 0, 1, new SealedBlobs(plain, [NEW])),
      (error) => error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE',
    );
  });

  it('are refused when somebody has changed, exchanged or cut them in their store', async () => {
    const bytes = randomBytes(3 * BLOCK);
    const tampered = async (change: (sealed: Buffer) => Buffer): Promise<string> => {
      const key = await store(bytes);
      const path = join(folder, key);
      writeFileSync(path, change(readFileSync(path)));
      return key;
    };
    const failing = [
      await tampered((sealed) => Buffer.concat([Buffer.of(sealed[0]! ^ 1), sealed.subarray(1)])),
      await tampered((sealed) => Buffer.concat([sealed.subarray(0, -1), Buffer.of(sealed.at(-1)! ^ 1)])),
      await tampered((sealed) =>
        Buffer.concat([sealed.subarray(SEALED, 2 * SEALED), sealed.subarray(0, SEALED), sealed.subarray(2 * SEALED)]),
      ),
      await tampered((sealed) => sealed.subarray(0, -1)),
    ];
    const other = blobs.newKey('t');
    mkdirSync(dirname(join(folder, other)), { recursive: true });
    copyFileSync(join(folder, await store(bytes)), join(folder, other));
    for (const key of [...failing, other]) await assert.rejects(read(key, 0, bytes.length));
    // One that ends early has fewer bytes, which a download and an import notice.
    const short = await tampered((sealed) => sealed.subarray(0, 2 * SEALED));
    assert.equal((await read(short, 0, bytes.length)).length, 2 * BLOCK);
  });
});
