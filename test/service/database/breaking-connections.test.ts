/**
 * New connections that break while they are set up, at any stage. The work that wanted one fails as the database's
 * failures do; the process goes on. Source: docs/reference/reliability.md.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database, isConnectionError } from '../../../mixins/database/database.ts';
import { type BreakingProxy, STAGES, startBreakingProxy } from '../../support/breaking-proxy.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('connections that break during set-up', function () {
  this.timeout(60_000);
  let server: TestDatabase;
  let proxy: BreakingProxy;
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  let listeners: NodeJS.UncaughtExceptionListener[] = [];
  before(async () => {
    server = await createDatabase();
    proxy = await startBreakingProxy(server.url);
    // Mocha would report them for whatever test runs by then.
    listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', note);
  });
  after(async () => {
    process.removeListener('uncaughtException', note);
    for (const listener of listeners) process.on('uncaughtException', listener);
    await proxy?.close();
    await server?.drop();
  });

  for (const stage of STAGES)
    for (const how of ['reset', 'end'] as const)
      it(`fail only their own request (${how} when ${stage})`, async () => {
        const database = new Database(proxy.url, { size: 4, applicationName: 'breaking test' });
        try {
          proxy.breakBy(() => ({ stage, how }));
          const before = proxy.broken;
          const asked = await Promise.allSettled(Array.from({ length: 12 }, () => database.query('SELECT 1')));
          await pause(20);
          assert.deepEqual(uncaught.splice(0), []);
          assert.ok(proxy.broken > before);
          for (const outcome of asked)
            if (outcome.status === 'rejected') assert.ok(isConnectionError(outcome.reason), String(outcome.reason));
          proxy.breakBy(() => null);
          for (let attempt = 1; ; attempt++)
            try {
              assert.equal((await database.query<{ one: number }>('SELECT 1 AS one')).rows[0]!.one, 1);
              break;
            } catch (error) {
              assert.ok(isConnectionError(error) && attempt < 10, String(error));
            }
        } finally {
          await database.close();
        }
      });
});
