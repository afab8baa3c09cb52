/**
 * Contents of files up and down, beside the least that a server with a folder can do: node:http, SHA-256, fsync. One client, one
 * process each, in turn. `node bench/files.ts --mib 8 --rounds 20`; more than 10 MiB are sent in chunks, as with `--mib 5120 --rounds 1`.
 */
import { spawn } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, readFileSync } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { type ClientRequest, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { ALL_SERVICES } from '../config/services.ts';
import { LIMITS } from '../lib/limits.ts';
import { type Answer, api, tokenFor } from '../test/support/client.ts';
import { stopOwnServer } from '../test/support/database.ts';
import { createPlatformDatabase } from '../test/support/platform.ts';
import { startProcess } from '../test/support/processes.ts';

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '20' },
    /** Of chunks. */
    chunk: { type: 'string', default: '64' },
    /** Folder of the least server, which this process is then. */
    serve: { type: 'string' },
  },
});
const MIB = 1024 * 1024;
const BYTES = Number(values.mib) * MIB;
const CHUNK = Math.min(BYTES, Number(values.chunk) * MIB);
const ROUNDS = Number(values.rounds);

async function serveLeast(folder: string): Promise<void> {
  let last = 0;
  const server = createServer(async (req, res) => {
    if (req.method === 'GET') return void createReadStream(join(folder, (req.url ?? '').slice(1))).pipe(res);
    const id = String(last++);
    const file = await open(join(folder, id), 'wx');
    const hash = createHash('sha256');
    for await (const chunk of req) {
      hash.update(chunk);
      await file.write(chunk);
    }
    await file.sync();
    await file.close();
    res.setHeader('repr-digest', hash.digest('base64'));
    res.end(id);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  console.info(String((server.address() as AddressInfo).port));
}

/** Stores a content, which is the piece again and again, and reads it back. */
interface Target {
  readonly name: string;
  readonly pid: number;
  up(piece: Buffer, sha256: Uint8Array): Promise<string>;
  down(id: string): Promise<number>;
  stop(): Promise<unknown>;
}

function* pieces(piece: Buffer): Generator<Buffer> {
  for (let sent = 0; sent < BYTES; sent += piece.length) yield piece.subarray(0, BYTES - sent);
}

const responseTo = (sent: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => sent.once('response', resolve).once('error', reject));

async function read(url: string, headers: Record<string, string> = {}): Promise<number> {
  const sent = request(url, { headers }).end();
  let bytes = 0;
  for await (const chunk of await responseTo(sent)) bytes += chunk.length;
  return bytes;
}

async function least(folder: string): Promise<Target> {
  const child = spawn(process.execPath, [import.meta.filename, '--serve', folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = await once(child.stdout, 'data');
  const at = `http://127.0.0.1:${String(port).trim()}/`;
  return {
    name: 'node:http',
    pid: child.pid ?? 0,
    up: async (piece) => {
      const sent = request(at, { method: 'POST', headers: { 'content-length': String(BYTES) } });
      const answered = responseTo(sent);
      await pipeline(Readable.from(pieces(piece)), sent);
      return (await (await answered).toArray()).join('');
    },
    down: (id) => read(at + id),
    stop: async () => child.kill(),
  };
}

async function platform(folder: string): Promise<Target> {
  const database = await createPlatformDatabase();
  const started = await startProcess({
    services: [...ALL_SERVICES],
    databaseUrl: database.url,
    natsUrl: '',
    env: {
      DATA_DIR: folder,
      SEED_DEMO: 'false',
      ...(process.env['FILES_KEY'] ? { FILES_KEY: process.env['FILES_KEY'] } : {}),
    },
  });
  const { baseUrl, pid } = started;
  const token = await tokenFor(baseUrl, 'sam');
  const sam = api(baseUrl, token);
  const answered = async (expected: number, work: Promise<Answer>) => {
    const reply = await work;
    if (reply.status !== expected) throw new Error(reply.text);
    return reply.body;
  };
  const inOneRequest = async (bytes: Buffer, sha256: Uint8Array): Promise<string> => {
    const headers = {
      'content-type': 'application/octet-stream',
      'x-file-name': 'bench.bin',
      'content-digest': `sha-256=:${Buffer.from(sha256).toString('base64')}:`,
    };
    return (await answered(201, sam.send('POST', '/files', bytes, { headers }))).fileId;
  };
  const inChunks = async (piece: Buffer, sha256: Uint8Array): Promise<string> => {
    const begun = { name: 'bench.bin', contentType: 'application/octet-stream', size: BYTES };
    const at = `/files/uploads/${(await answered(201, sam.post('/files/uploads', begun))).uploadId}`;
    let offset = 0;
    for (const bytes of pieces(piece)) {
      const sent = request(`${baseUrl}/api/v1${at}`, {
        method: 'PATCH',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/offset+octet-stream',
          'upload-offset': String(offset),
          'content-length': String(bytes.length),
        },
      }).end(bytes);
      const answer = await responseTo(sent);
      const text = (await answer.toArray()).join('');
      if (answer.statusCode !== 204) throw new Error(text);
      offset += bytes.length;
    }
    const from = performance.now();
    const complete = { sha256: Buffer.from(sha256).toString('hex') };
    const { fileId } = await answered(201, sam.post(`${at}/complete`, complete, { idempotencyKey: randomUUID() }));
    console.info(`completed in ${Math.round(performance.now() - from)} ms`);
    return fileId;
  };
  return {
    name: 'platform',
    pid,
    up: (piece, sha256) =>
      BYTES <= LIMITS.file_body_max_bytes ? inOneRequest(piece, sha256) : inChunks(piece, sha256),
    down: (id) => read(`${baseUrl}/api/v1/files/${id}/content`, { authorization: `Bearer ${token}` }),
    stop: async () => {
      await started.stop();
      await database.drop();
    },
  };
}

/** Processor time of the process so far, in seconds; Linux alone says it, in hundredths. */
function processorOf(pid: number): number {
  try {
    const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number);
    return (user + system) / 100;
  } catch {
    return Number.NaN;
  }
}

/** The most memory that the process has had, in MiB; Linux alone says it. */
function peakOf(pid: number): number | null {
  try {
    return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
  } catch {
    return null;
  }
}

async function compare(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'erp-bench-files-'));
  const targets = [await least(folder), await platform(folder)];
  try {
    const taken = targets.map((one) => ({
      ...one,
      upMs: 0,
      downMs: 0,
      upSeconds: 0,
      downSeconds: 0,
      before: peakOf(one.pid),
    }));
    const warmUp = BYTES <= LIMITS.file_body_max_bytes ? 2 : 0;
    for (let round = -warmUp; round < ROUNDS; round++) {
      const piece = randomBytes(CHUNK);
      const hash = createHash('sha256');
      for (const bytes of pieces(piece)) hash.update(bytes);
      const sha256 = hash.digest();
      for (const one of taken) {
        const used = [processorOf(one.pid)];
        const from = performance.now();
        const id = await one.up(piece, sha256);
        const between = performance.now();
        used.push(processorOf(one.pid));
        if ((await one.down(id)) !== BYTES) throw new Error(`${one.name} has answered other bytes.`);
        const to = performance.now();
        if (round < 0) continue;
        one.upMs += between - from;
        one.downMs += to - between;
        const [before = 0, middle = 0] = used;
        one.upSeconds += middle - before;
        one.downSeconds += processorOf(one.pid) - middle;
      }
    }
    for (const { name, pid, upMs, downMs, upSeconds, downSeconds, before } of taken) {
      const rate = (ms: number): string => `${Math.round((ROUNDS * BYTES) / MIB / (ms / 1_000))} MiB/s`;
      console.info(
        `${name}: up ${rate(upMs)}, down ${rate(downMs)}, ${ROUNDS} times ${values.mib} MiB; ` +
          `processor ${upSeconds.toFixed(1)} s up, ${downSeconds.toFixed(1)} s down; memory at most ${peakOf(pid)} MiB, ${before} before`,
      );
    }
  } finally {
    for (const { stop } of targets) await stop();
    await stopOwnServer();
    await rm(folder, { recursive: true, force: true });
  }
}

if (values.serve === undefined) await compare();
else await serveLeast(values.serve);
