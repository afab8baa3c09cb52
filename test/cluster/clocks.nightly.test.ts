/** Wrong clocks, and clocks set at runtime, have no effect on callers. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Answer, type Api, api, forgetTokens, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { MachineClock } from '../support/machine-clock.ts';
import { startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Services of a process whose clock is right. */
const OTHERS = 'agent+analytics+metadata';
const ANONYMOUS_REQUESTS = 240;

describe('machines with wrong clocks', function () {
  this.timeout(180_000);
  let nats: Awaited<ReturnType<typeof startSecureNats>>;
  let database: TestDatabase;
  let others: TestPlatform;
  const processes: ServiceProcess[] = [];
  const clocks: MachineClock[] = [];
  let gateway: { baseUrl: string; health: string; clock: MachineClock };
  let auth: MachineClock;
  let data: [MachineClock, MachineClock];
  let ratelimit: MachineClock;
  let sam: Api;
  let ada: Api;

  const startAhead = async (service: ServiceName, aheadMs: number): Promise<typeof gateway> => {
    const clock = new MachineClock(aheadMs);
    clocks.push(clock);
    const port = await freePort();
    const process = await startProcess({
      services: [service],
      databaseUrl: database.url,
      natsUrl: nats.url,
      env: {
        ...nats.environment(service),
        ...clock.environment,
        RATE_ANONYMOUS_REQUESTS: String(ANONYMOUS_REQUESTS),
        HEALTH_PORT: String(port),
      },
    });
    processes.push(process);
    return { baseUrl: process.baseUrl, health: `http://127.0.0.1:${port}`, clock };
  };

  before(async () => {
    [nats, database] = await Promise.all([startSecureNats([OTHERS]), createPlatformDatabase()]);
    others = await startPlatform({
      services: OTHERS.split('+') as never,
      database,
      seed: false,
      env: nats.environment(OTHERS),
    });
    const [one, two, three, four] = await Promise.all([
      startAhead('data', HOUR),
      startAhead('data', 0),
      startAhead('auth', 10 * MINUTE),
      startAhead('ratelimit', HOUR),
    ]);
    data = [one.clock, two.clock];
    [auth, ratelimit] = [three.clock, four.clock];
    gateway = await startAhead('gateway', -HOUR);
    const as = async (user: string): Promise<Api> => api(gateway.baseUrl, await tokenFor(gateway.baseUrl, user));
    [sam, ada] = [await as('sam'), await as('ada')];
  });
  after(async () => {
    if (gateway) forgetTokens(gateway.baseUrl);
    await Promise.all(processes.map((process) => process.stop()));
    await others?.stop();
    await nats?.stop();
    await database?.drop();
    for (const clock of clocks) clock.remove();
  });

  const create = (name: string): Promise<Answer> => sam.post('/data/Account', { name });
  const minutesFromNow = (time: string): number => Math.abs(Date.parse(time) - Date.now()) / MINUTE;

  it('serve users as with correct clocks', async () => {
    for (let i = 0; i < 8; i++) {
      const created = await create(`Account ${i}`);
      assert.equal(created.status, 201, created.text);
      assert.ok(minutesFromNow(created.body.createdAt) < 1, 'the time of a record is that of the database');
      const idTime = Number.parseInt(created.body.id.replace('-', '').slice(0, 12), 16);
      assert.ok(Math.abs(idTime - Date.now()) < MINUTE, 'so is the time in its id');
      const changed = await sam.patch(
        `/data/Account/${created.body.id}`,
        { name: `Account ${i} renamed` },
        { etag: created.headers.get('etag')! },
      );
      assert.equal(changed.status, 200, changed.text);
    }
    assert.equal((await sam.get('/data/Account')).status, 200);
  });

  it('are ready, and report their clock offset in a metric', async () => {
    const ready = await fetch(`${gateway.health}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
    const metrics = await (await fetch(`${gateway.health}/metrics`)).text();
    assert.match(metrics, /^erp_clock_offset_seconds -(3599|3600)(\.\d+)?$/m);
  });

  it('keep the audit trail in commit order and complete over pages', async () => {
    const since = new Date(Date.now() - 1_000).toISOString();
    const written: string[] = [];
    const pages: string[] = [];
    const write = async (): Promise<void> => {
      const created = await create('Audited');
      assert.equal(created.status, 201, created.text);
      written.push(created.body.id);
    };
    for (let i = 0; i < 24; i++) await write();
    const before = written.length;
    let cursor: string | null = null;
    do {
      const page: Answer = await ada.get(
        `/events/audit?outcome=committed&take=5&from=${since}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
      );
      assert.equal(page.status, 200, page.text);
      pages.push(...page.body.records.map((entry: { recordId: string }) => entry.recordId));
      cursor = page.body.nextCursor;
      await write();
    } while (cursor !== null);
    const wanted = written.slice(0, before).reverse();
    assert.deepEqual(
      pages.filter((id) => wanted.includes(id)),
      wanted,
    );
  });

  it('keep working when their clocks are set under traffic', async () => {
    const answers: Answer[] = [];
    let over = false;
    const work = async (): Promise<void> => {
      while (!over) {
        const key = randomUUID();
        const name = `Keyed ${key}`;
        const first = await sam.post('/data/Account', { name }, { idempotencyKey: key });
        const again = await sam.post('/data/Account', { name }, { idempotencyKey: key });
        answers.push(first, again, await sam.get('/data/Account?take=5'));
        assert.equal(first.body.id, again.body.id, 'done once');
      }
    };
    const traffic = Promise.all([work(), work(), work()]);
    const machines = [gateway.clock, ...data, auth, ratelimit];
    for (const ahead of [0, HOUR, -HOUR, 10 * MINUTE]) {
      for (const [i, clock] of machines.entries()) clock.set(i % 2 === 0 ? ahead : -ahead);
      await pause(1_500);
    }
    over = true;
    await traffic;
    assert.ok(answers.length > 30, `${answers.length} answers`);
    assert.deepEqual(
      answers.filter(({ status }) => status >= 300).map(({ status, text }) => [status, text]),
      [],
    );
  });

  it('sign users in after the clock of auth is set, and accept earlier tokens', async () => {
    auth.set(-10 * MINUTE);
    await pause(100);
    forgetTokens(gateway.baseUrl);
    const again = api(gateway.baseUrl, await tokenFor(gateway.baseUrl, 'sam'));
    assert.equal((await again.get('/identity')).status, 200);
    assert.equal((await sam.get('/identity')).status, 200);
  });

  it('extend no lockout beyond its limit when set back', async () => {
    gateway.clock.set(HOUR);
    ratelimit.set(HOUR);
    await pause(100);
    const ask = (): Promise<Response> => fetch(`${gateway.baseUrl}/api/v1/identity`);
    let refused: Response | undefined;
    for (let i = 0; i < 2 * ANONYMOUS_REQUESTS && !refused; i++) {
      const answer = await ask();
      await answer.arrayBuffer();
      if (answer.status === 429) refused = answer;
    }
    assert.ok(refused, 'the limit is reached');
    gateway.clock.set(-HOUR);
    ratelimit.set(-HOUR);
    const seconds = Number(refused.headers.get('retry-after'));
    assert.ok(seconds >= 1 && seconds <= 60, `Retry-After: ${seconds}`);
    await pause(seconds * 1_000 + 200);
    assert.equal((await ask()).status, 401, 'it is answered again');
    let answered = 0;
    for (let i = 0; i < 50; i++) if ((await ask()).status === 401) answered++;
    assert.ok(answered < 50, 'and the limit holds');
  });
});
