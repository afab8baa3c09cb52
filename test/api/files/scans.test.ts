/** Contents are scanned by clamd before anybody reads them. Source: docs/reference/files.md#scans. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Api } from '../../support/client.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import type { Deals } from '../data/deals.ts';
import { refused, startFiles, store } from './world.ts';

/** Harmless: what every scanner takes for harmful, in two halves so that none finds it here. */
const EICAR = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$', 'EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join('');
const STREAM_MAX = 1_000_000;

/** Speaks INSTREAM as clamd does. `held`: it takes everything and does not answer yet. */
class FakeClamd {
  held = false;
  readonly signatures = [EICAR];
  readonly server: Server = createServer((socket) => void this.#serve(socket).catch(() => socket.destroy()));
  readonly #waiting: (() => void)[] = [];

  release(): void {
    this.held = false;
    for (const go of this.#waiting.splice(0)) go();
  }

  async #serve(socket: Socket): Promise<void> {
    socket.on('error', () => {});
    let bytes = Buffer.of();
    const content: Buffer[] = [];
    let length = 0;
    for await (const chunk of socket) {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.subarray(0, 10).toString() === 'zINSTREAM\0') bytes = bytes.subarray(10);
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE()) {
        const size = bytes.readUInt32BE();
        content.push(bytes.subarray(4, 4 + size));
        length += size;
        bytes = bytes.subarray(4 + size);
        if (length > STREAM_MAX) return void socket.end('INSTREAM size limit exceeded. ERROR\0');
        if (size > 0) continue;
        if (this.held) await new Promise<void>((resolve) => this.#waiting.push(resolve));
        const harmful = this.signatures.some((signature) => Buffer.concat(content).includes(signature));
        return void socket.end(harmful ? 'stream: Eicar-Test-Signature FOUND\0' : 'stream: OK\0');
      }
    }
  }
}

describe('scans of contents', () => {
  const clamd = new FakeClamd();
  let deals: Deals;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    const path = join(temporaryFolder('clamd'), 'socket');
    clamd.server.listen(path);
    await once(clamd.server, 'listening');
    deals = await startFiles({ env: { CLAMD_URL: `unix://${path}` } });
    sam = deals.as.sam;
  });
  after(async () => {
    clamd.release();
    clamd.server.close();
    await deals?.platform.stop();
  });

  const stateOf = async (id: string): Promise<string> => (await sam.get(`/files/${id}`)).body.state;
  const becomes = (id: string, state: string) => until(async () => (await stateOf(id)) === state);

  it('let nobody read what is not scanned, nor what is harmful', async () => {
    clamd.held = true;
    const clean = await store(sam, 'clean');
    assert.equal(clean.state, 'scanning');
    const waiting = await sam.get(`/files/${clean.fileId}/content`);
    refused(waiting, 422, 'FILE_QUARANTINED');
    assert.equal(waiting.body.details.state, 'scanning');
    clamd.release();
    await becomes(clean.fileId, 'ready');
    assert.equal((await sam.get(`/files/${clean.fileId}/content`)).text, 'clean');
    const harmful = await store(sam, EICAR);
    await becomes(harmful.fileId, 'quarantined');
    const denied = await sam.get(`/files/${harmful.fileId}/content`);
    refused(denied, 422, 'FILE_QUARANTINED');
    assert.equal(denied.body.details.state, 'quarantined');
  });

  it('do not tell by their state that the content was there before', async () => {
    const { sue } = deals.as;
    const first = await store(sue, 'twice');
    await until(async () => (await sue.get(`/files/${first.fileId}`)).body.state === 'ready');
    clamd.held = true;
    const second = await store(sam, 'twice');
    assert.equal(second.state, 'scanning');
    refused(await sam.get(`/files/${second.fileId}/content`), 422, 'FILE_QUARANTINED');
    assert.equal((await sue.get(`/files/${first.fileId}/content`)).text, 'twice', 'scanned before');
    clamd.release();
    await becomes(second.fileId, 'ready');
    const harmful = await store(sam, EICAR);
    assert.equal(harmful.state, 'scanning');
    await becomes(harmful.fileId, 'quarantined');
  });

  it('quarantine every file of a content that is found harmful later', async () => {
    const [one, other] = ['found out later', 'found out later'].map((content) => store(sam, content));
    const { fileId } = await one!;
    await becomes(fileId, 'ready');
    await becomes((await other!).fileId, 'ready');
    clamd.signatures.push('found out later');
    const third = await store(deals.as.sue, 'found out later');
    await becomes(fileId, 'quarantined');
    refused(await sam.get(`/files/${fileId}/content`), 422, 'FILE_QUARANTINED');
    // Its own scan may still be ending.
    await until(async () => (await deals.as.sue.get(`/files/${third.fileId}`)).body.state === 'quarantined');
    clamd.signatures.pop();
    const fourth = await store(sam, 'found out later');
    await becomes(fourth.fileId, 'quarantined');
  });

  it('quarantine what is too large to be scanned', async () => {
    const { fileId } = await store(sam, Buffer.alloc(STREAM_MAX + 1, 'x'));
    await becomes(fileId, 'quarantined');
  });
});
