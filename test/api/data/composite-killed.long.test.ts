/** A process that is killed in the middle of a composite request: the same request, sent again, has happened once. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES } from '../../../config/services.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import type { TestDatabase } from '../../support/database.ts';
import { createPlatformDatabase } from '../../support/platform.ts';
import { type ServiceProcess, startProcess } from '../../support/processes.ts';

const KILLS = Number(process.env['COMPOSITE_KILLS'] ?? 2);

describe('composite requests while processes are killed', function () {
  this.timeout(600_000);
  let database: TestDatabase;
  let platform: ServiceProcess;
  let account: string;
  const start = async (): Promise<void> => {
    platform = await startProcess({
      services: [...ALL_SERVICES],
      databaseUrl: database.url,
      natsUrl: '',
      env: { SEED_DEMO: 'false' },
    });
  };
  const sam = async (): Promise<Api> => api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  before(async () => {
    database = await createPlatformDatabase();
    await start();
    account = (await (await sam()).get('/data/Account?take=1')).body.records[0].id;
  });
  after(async () => {
    await platform?.stop();
    await database?.drop();
  });

  const contact = (name: string): object => ({ name, lastName: 'Killed', accountId: account });
  const stored = async (name: string): Promise<number> =>
    (await (await sam()).post('/data/Contact/query', { where: { name }, includeTotal: true })).body.total;

  const kinds: readonly (readonly [string, number, string, (name: string) => object])[] = [
    ...[true, false].map((allOrNone) => {
      const requests = (name: string): object[] =>
        Array.from({ length: 40 }, (_, index) => ({
          referenceId: `p${index}`,
          method: 'POST',
          path: '/data/Contact',
          body: contact(name),
        }));
      return [
        `of parts, allOrNone ${allOrNone}`,
        40,
        '/composite',
        (name: string): object => ({ allOrNone, requests: requests(name) }),
      ] as const;
    }),
    [
      'of rows',
      200,
      '/composite/records',
      (name) => ({
        objectApiName: 'Contact',
        operation: 'create',
        records: Array.from({ length: 200 }, () => ({ fields: contact(name) })),
      }),
    ],
  ];
  for (const [what, count, path, bodyOf] of kinds)
    it(`happen once: ${what}`, async () => {
      const [name, key] = [`Killed ${randomUUID()}`, randomUUID()];
      const body = bodyOf(name);
      const send = async (): Promise<Answer> => (await sam()).post(path, body, { idempotencyKey: key });
      for (let kill = 0; kill < KILLS; kill++) {
        const sent = send().catch(() => null);
        await pause(30 + Math.random() * 250);
        await platform.kill();
        await sent;
        await start();
      }
      const reply = await send();
      assert.equal(reply.status, 200, reply.text);
      assert.ok(
        reply.body.results.every(({ status }: Answer) => status === 201),
        reply.text,
      );
      assert.equal(await stored(name), count);
      assert.equal((await send()).text, reply.text);
    });
});
