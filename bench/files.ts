/**
 * Contents of files up and down, beside the least that a server with a folder can do: node:http, SHA-256, fsync. One client, one
 * process each, in turn. `node bench/files.ts --mib 8 --rounds 20`.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { api, tokenFor } from '../test/support/client.ts';
import { stopOwnServer } from '../test/support/database.ts';
import { startPlatform } from '../test/support/platform.ts';

const { values } = parseArgs({
  options: { mib: { type: 'string', default: '8' }, rounds: { type: 'string', default: '20' } },
});
const MIB = 1024 * 1024;
const BYTES = Number(values.mib) * MIB;
const ROUNDS = Number(values.rounds);

/** Stores a body and reads it back. */
interface Target {
  readonly name: string;
  up(bytes: Buffer): Promise<string>;
  down(id: string): Promise<number>;
}

async function limit(folder: string): Promise<{ target: Target; server: Server }> {
  let last = 0;
  const server = createServer(async (request, response) => {
    if (request.method === 'GET')
      return void createReadStream(join(folder, (request.url ?? '').slice(1))).pipe(response);
    const id = String(last++);
    const file = await open(join(folder, id), 'wx');
    const hash = createHash('sha256');
    for await (const chunk of request as AsyncIterable<Buffer>) {
      hash.update(chunk);
      await file.write(chunk);
    }
    await file.sync();
    await file.close();
    response.setHeader('repr-digest', hash.digest('base64'));
    response.end(id);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const target: Target = {
    name: 'node:http',
    up: async (body) => (await fetch(at, { method: 'POST', body: new Uint8Array(body) })).text(),
    down: async (id) => (await (await fetch(at + id)).arrayBuffer()).byteLength,
  };
  return { target, server };
}

async function platformTarget(baseUrl: string): Promise<Target> {
  const token = await tokenFor(baseUrl, 'sam');
  const sam = api(baseUrl, token);
  return {
    name: 'platform',
    up: async (bytes) => {
      const reply = await sam.send('POST', '/files', bytes, {
        headers: {
          'content-type': 'application/octet-stream',
          'x-file-name': 'bench.bin',
          'content-digest': `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`,
        },
      });
      if (reply.status !== 201) throw new Error(reply.text);
      return reply.body.fileId;
    },
    down: async (id) => {
      const content = await fetch(`${baseUrl}/api/v1/files/${id}/content`, {
        headers: { authorization: `Bearer ${token}` },
      });
      return (await content.arrayBuffer()).byteLength;
    },
  };
}

const folder = await mkdtemp(join(tmpdir(), 'erp-bench-files-'));
const platform = await startPlatform({ env: { DATA_DIR: folder } });
const { target, server } = await limit(folder);
try {
  const targets = [target, await platformTarget(platform.baseUrl)];
  const taken = targets.map((one) => ({ ...one, upMs: 0, downMs: 0 }));
  for (let round = -2; round < ROUNDS; round++)
    for (const one of taken) {
      const { name, up, down } = one;
      const bytes = randomBytes(BYTES);
      const from = performance.now();
      const id = await up(bytes);
      const between = performance.now();
      if ((await down(id)) !== BYTES) throw new Error(`${name} has answered other bytes.`);
      const to = performance.now();
      if (round < 0) continue;
      one.upMs += between - from;
      one.downMs += to - between;
    }
  for (const { name, upMs, downMs } of taken) {
    const rate = (ms: number): string => `${Math.round((ROUNDS * BYTES) / MIB / (ms / 1_000))} MiB/s`;
    console.info(`${name}: up ${rate(upMs)}, down ${rate(downMs)}, ${ROUNDS} times ${values.mib} MiB`);
  }
} finally {
  server.close();
  await platform.stop();
  await stopOwnServer();
  await rm(folder, { recursive: true, force: true });
}
