/** The documents are the same wherever they are built, and from whichever process and however packed they are served. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { cpSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { repositoryFiles, root } from '../support/sources.ts';

/** Two places that have little in common. */
const PLACES = [
  { env: { TZ: 'Asia/Kolkata', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' }, umask: '077', reversed: false },
  { env: { TZ: 'America/St_Johns', LANG: 'sv_SE.UTF-8', LC_ALL: 'C' }, umask: '000', reversed: true },
] as const;

const ADDRESSES = ['/versions/1.0.0/docs', '/api/v1/versions/1.0.0/docs'];
const ENCODINGS = ['identity', 'gzip', 'br, zstd, deflate', 'br;q=1.0, zstd;q=0.9, gzip;q=0.1', '*'];
const UNPACK: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

describe('documents of two builds in two processes', function () {
  this.timeout(240_000);
  const folders: string[] = [];
  let database: TestDatabase;
  let nats: NatsServer;
  const gateways: ServiceProcess[] = [];

  before(async () => {
    [database, nats] = await Promise.all([createDatabase(), startNats()]);
    for (const { env, umask, reversed } of PLACES) {
      const folder = await mkdtemp(join(tmpdir(), 'erp-documents-'));
      folders.push(folder);
      await copyRepository(folder, reversed);
      await promisify(execFile)('sh', ['-c', `umask ${umask}; exec "$0" scripts/documents.ts`, process.execPath], {
        cwd: folder,
        env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
      });
    }
    const options = { services: ['gateway'], databaseUrl: database.url, natsUrl: nats.url } as const;
    for (const [i, { env }] of PLACES.entries())
      gateways.push(await startProcess({ ...options, folder: folders[i] ?? '', env: { ...env } }));
  });
  after(async () => {
    for (const gateway of gateways) await gateway.stop();
    await nats?.stop();
    await database?.drop();
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  });

  it('are one archive, bit for bit', async () => {
    const [first, second] = await Promise.all(
      folders.map((folder) => readFile(join(folder, '.documents', '1.0.0.tar.gz'))),
    );
    assert.ok(first && second && first.equals(second));
  });

  it('are served with the listed checksums, at both addresses, in any encoding', async () => {
    const lists = new Set<string>();
    const wrong: string[] = [];
    let files = 0;
    for (const { baseUrl } of gateways)
      for (const address of ADDRESSES) {
        const list = (await ask(`${baseUrl}${address}/checksums.txt`, 'identity')).body.toString();
        lists.add(list);
        for (const line of list.trimEnd().split('\n'))
          for (const encoding of ENCODINGS) {
            const url = `${baseUrl}${address}/${line.slice(66)}`;
            const { status, body } = await ask(url, encoding);
            files++;
            if (status !== 200 || hash('sha256', body) !== line.slice(0, 64)) wrong.push(`${url} (${encoding})`);
          }
      }
    assert.deepEqual(wrong, []);
    assert.equal(lists.size, 1);
    assert.ok(files > 4_000, `${files} files`);
  });

  it('are the documents that the manifest names by their checksums', async () => {
    for (const { baseUrl } of gateways)
      for (const address of ADDRESSES)
        for (const encoding of ENCODINGS) {
          const { body } = await ask(`${baseUrl}${address}/ai-manifest.json`, encoding);
          const { openapi, guides } = JSON.parse(body.toString()) as {
            openapi: { url: string; sha256: string };
            guides: { url: string; sha256: string }[];
          };
          assert.ok(guides.length > 5);
          for (const { url, sha256 } of [openapi, ...guides])
            assert.equal(hash('sha256', (await ask(`${baseUrl}${address}/${url}`, encoding)).body), sha256, url);
        }
  });

  it('have the same ETag from either process, another one for other bytes', async () => {
    for (const address of ADDRESSES)
      for (const encoding of ENCODINGS) {
        const [first, second] = await Promise.all(
          gateways.map(({ baseUrl }) => ask(`${baseUrl}${address}/index.html`, encoding)),
        );
        assert.equal(first?.etag, second?.etag);
        assert.equal(first?.etag?.endsWith('-gzip"'), first?.encoding === 'gzip');
      }
  });
});

interface Asked {
  readonly status: number;
  readonly etag: string | undefined;
  readonly encoding: string | undefined;
  /** Unpacked. */
  readonly body: Buffer;
}

const ask = (url: string, acceptEncoding: string): Promise<Asked> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { headers: { 'accept-encoding': acceptEncoding } }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.once('error', reject);
      answer.once('end', () => {
        const { etag, 'content-encoding': encoding } = answer.headers;
        const whole = Buffer.concat(parts);
        const body = encoding === undefined ? whole : UNPACK[encoding]?.(whole);
        if (body) resolve({ status: answer.statusCode ?? 0, etag, encoding, body });
        else reject(new Error(`${url} is packed as ${encoding}.`));
      });
    });
    sent.once('error', reject).end();
  });

/** Input of a build and of a process; `order` decides how a folder lists its files. */
async function copyRepository(folder: string, reversed: boolean): Promise<void> {
  const files = repositoryFiles().filter((path) => !/^(?:test|bench|k8s)\//.test(path));
  for (const path of reversed ? files.reverse() : files) cpSync(join(root, path), join(folder, path));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
}
