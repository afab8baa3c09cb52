/** Scans by a real clamd, where the machine has one (Debian: clamav-daemon), with a signature of its own and no other. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import type { Api } from '../../support/client.ts';
import { processStarted, processStopped } from '../../support/processes.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import type { Deals } from '../data/deals.ts';
import { refused, startFiles, store } from './world.ts';

const HARMFUL = 'what the one signature of this test takes for harmful';
const STREAM_MAX = 2 * 1024 * 1024;
const program = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'clamd'))
  .find((path) => existsSync(path));

describe('scans by clamd', function () {
  this.timeout(180_000);
  const folder = temporaryFolder('clamd');
  const socket = join(folder, 'socket');
  let child: ChildProcess | undefined;
  let deals: Deals;
  let sam: Api;

  const answers = (): Promise<boolean> =>
    new Promise((resolve) => {
      const asked = connect(socket, () => asked.write('zPING\0'));
      asked.on('error', () => resolve(false));
      asked.on('data', (text) => {
        asked.destroy();
        resolve(text.toString() === 'PONG\0');
      });
    });
  const startClamd = async (): Promise<void> => {
    child = spawn(program!, ['--config-file', join(folder, 'clamd.conf')], { stdio: 'ignore' });
    processStarted(child, 'clamd');
    await until(answers, 60);
  };
  const stopClamd = async (): Promise<void> => {
    if (!child) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    processStopped(child);
    child = undefined;
  };

  before(async function () {
    if (program === undefined) this.skip();
    const md5 = createHash('md5').update(HARMFUL).digest('hex');
    writeFileSync(join(folder, 'own.hdb'), `${md5}:${HARMFUL.length}:Own.Test\n`);
    const settings = {
      Foreground: 'yes',
      DatabaseDirectory: folder,
      TemporaryDirectory: folder,
      LocalSocket: socket,
      FixStaleSocket: 'yes',
      StreamMaxLength: STREAM_MAX,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
    writeFileSync(join(folder, 'clamd.conf'), lines.join(''));
    await startClamd();
    deals = await startFiles({ env: { CLAMD_URL: `unix://${socket}` } });
    sam = deals.as.sam;
  });
  after(async () => {
    await deals?.platform.stop();
    await stopClamd();
  });

  const becomes = (id: string, state: string): Promise<void> =>
    until(async () => (await sam.get(`/files/${id}`)).body.state === state, 60);

  it('clear what is clean and quarantine what is harmful or too large', async () => {
    const [clean, harmful, large, empty] = await Promise.all(
      ['clean', HARMFUL, Buffer.alloc(STREAM_MAX + 1, 'x'), ''].map((content) => store(sam, content)),
    );
    await becomes(clean.fileId, 'ready');
    await becomes(empty.fileId, 'ready');
    assert.equal((await sam.get(`/files/${clean.fileId}/content`)).text, 'clean');
    for (const { fileId } of [harmful, large]) {
      await becomes(fileId, 'quarantined');
      refused(await sam.get(`/files/${fileId}/content`), 422, 'FILE_QUARANTINED');
    }
  });

  it('wait while it is away, and are made when it is back', async () => {
    await stopClamd();
    const { fileId } = await store(sam, 'while it was away');
    refused(await sam.get(`/files/${fileId}/content`), 422, 'FILE_QUARANTINED');
    await startClamd();
    await becomes(fileId, 'ready');
  });
});
