/** A process that is killed in the middle of an upload leaves an upload that goes on, and no byte that is wrong. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES } from '../../../config/services.ts';
import { api, tokenFor } from '../../support/client.ts';
import type { TestDatabase } from '../../support/database.ts';
import { createPlatformDatabase } from '../../support/platform.ts';
import { type ServiceProcess, startProcess } from '../../support/processes.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { digest, sha256 } from './world.ts';

const MIB = 1024 * 1024;
const CHUNK = 2 * MIB;
const KILLS = Number(process.env['FILES_KILLS'] ?? 6);

describe('an upload while processes are killed', function () {
  this.timeout(600_000);
  const folder = temporaryFolder('files-killed');
  let database: TestDatabase;
  let process_: ServiceProcess;
  const start = async (): Promise<void> => {
    process_ = await startProcess({
      services: [...ALL_SERVICES],
      databaseUrl: database.url,
      natsUrl: '',
      env: { DATA_DIR: folder, SEED_DEMO: 'false' },
    });
  };
  before(async () => {
    database = await createPlatformDatabase();
    await start();
  });
  after(async () => {
    await process_?.stop();
    await database?.drop();
  });

  it('has every byte once in the end', async () => {
    const bytes = randomBytes(16 * MIB + 7);
    const sam = async () => api(process_.baseUrl, await tokenFor(process_.baseUrl, 'sam'));
    const begun = await (await sam()).post('/files/uploads', { name: 'a', contentType: 'a/b', size: bytes.length });
    assert.equal(begun.status, 201, begun.text);
    const at = `/files/uploads/${begun.body.uploadId}`;
    const send = async (offset: number): Promise<number | null> =>
      (await sam())
        .send('PATCH', at, bytes.subarray(offset, offset + CHUNK), {
          idempotencyKey: null,
          headers: {
            'content-type': 'application/offset+octet-stream',
            'upload-offset': String(offset),
            'content-digest': digest(bytes.subarray(offset, offset + CHUNK)),
          },
        })
        .then(({ status }) => status)
        .catch(() => null);
    let kills = 0;
    const key = randomUUID();
    for (;;) {
      const offset = Number((await (await sam()).send('HEAD', at)).headers.get('upload-offset'));
      assert.ok(offset % CHUNK === 0 || offset === bytes.length, String(offset));
      if (offset === bytes.length) break;
      const sent = send(offset);
      if (kills < KILLS) {
        kills++;
        await pause(Math.random() * 120);
        await process_.kill();
        await sent;
        await start();
      } else assert.ok([204, 409].includes((await sent) ?? 0));
    }
    // While it is completed as well.
    const complete = async () =>
      (await sam()).post(`${at}/complete`, { sha256: sha256(bytes) }, { idempotencyKey: key });
    const first = complete().catch(() => null);
    await pause(Math.random() * 200);
    await process_.kill();
    await first;
    await start();
    const made = await complete();
    assert.equal(made.status, 201, made.text);
    const headers = { authorization: `Bearer ${await tokenFor(process_.baseUrl, 'sam')}` };
    const read = await fetch(`${process_.baseUrl}/api/v1/files/${made.body.fileId}/content`, { headers });
    assert.ok(Buffer.from(await read.arrayBuffer()).equals(bytes));
    assert.equal((await (await sam()).get('/files')).body.records.length, 1);
  });
});
