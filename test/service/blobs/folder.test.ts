import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { FolderBlobs } from '../../../mixins/blobs/folder.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { describeStore } from './stores.ts';

/** Writes half of a blob, says so, and waits for the rest. */
const HALF = `
import { FolderBlobs } from ${JSON.stringify(join(import.meta.dirname, '../../../mixins/blobs/folder.ts'))};
async function* half() {
  yield Buffer.alloc(1024 * 1024);
  process.stdout.write('half');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}
await new FolderBlobs(process.argv[1]).write('a/killed', half());
`;

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((one) =>
    one.isFile() ? [join(one.parentPath, one.name)] : [],
  );

describe('Blobs in a folder', function () {
  this.timeout(30_000);
  describeStore(() => new FolderBlobs(temporaryFolder('blobs')));

  it('are not there when their process was killed, and its leftovers go', async () => {
    const folder = temporaryFolder('blobs');
    const child = spawn(process.execPath, ['--input-type=module', '-e', HALF, folder]);
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'close');
    await assert.rejects(new FolderBlobs(folder).read('a/killed', { from: 0, bytes: 1 }), /does not have the bytes/);
    const [leftover, ...more] = filesOf(folder);
    assert.ok(leftover && more.length === 0, 'one file is left');
    const write = (key: string): Promise<void> =>
      new FolderBlobs(folder).write(
        key,
        (async function* () {
          yield Buffer.from(key);
        })(),
      );
    await write('a/one');
    assert.ok(filesOf(folder).includes(leftover), 'what may still be written stays');
    const longAgo = Date.now() / 1_000 - 7_200;
    utimesSync(leftover, longAgo, longAgo);
    await write('a/two');
    assert.deepEqual(filesOf(folder).sort(), [join(folder, 'a/one'), join(folder, 'a/two')]);
  });

  it('answer 503 when the disk is full, leave nothing, and go on when there is room', async function () {
    const folder = temporaryFolder('blobs-full');
    const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder], { stdio: 'ignore' });
    if (mount.status !== 0) this.skip(); // only root may mount one
    try {
      const blobs = new FolderBlobs(folder);
      const write = (key: string, mib: number): Promise<void> =>
        blobs.write(
          key,
          (async function* () {
            for (let i = 0; i < mib; i++) yield randomBytes(1024 * 1024);
          })(),
        );
      await write('a/one', 2);
      for (let i = 0; i < 2; i++)
        await assert.rejects(
          write('a/two', 4),
          (error) => error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE',
        );
      assert.deepEqual(filesOf(folder), [join(folder, 'a/one')]);
      await write('a/two', 1);
      await blobs.remove('a/one');
      await write('a/three', 2);
    } finally {
      spawnSync('umount', [folder]);
    }
  });

  it('answer 503 when the folder cannot be written', async () => {
    const blobs = new FolderBlobs(join(import.meta.filename, 'no-folder'));
    const write = blobs.write('a', (async function* () {})());
    await assert.rejects(write, (error) => error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE');
  });
});
