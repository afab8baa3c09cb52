/** Statements that travel together, and the connection that they lose. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database, isConnectionError } from '../../../mixins/database/database.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('statements that travel together', () => {
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'pipeline test' });
  });
  after(async () => {
    await database?.close();
    await server?.drop();
  });

  for (const kind of ['query', 'arrays'] as const)
    it(`fail together when the connection goes, and the process goes on (${kind})`, async () => {
      const unhandled: unknown[] = [];
      const note = (reason: unknown): void => void unhandled.push(reason);
      // Mocha would report them for whatever test runs by then.
      const listeners = process.listeners('unhandledRejection');
      process.removeAllListeners('unhandledRejection');
      process.on('unhandledRejection', note);
      try {
        await assert.rejects(
          database.transaction(async (tx) => {
            const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
            const first = tx[kind]({ text: 'SELECT pg_sleep(60)', values: [] });
            const second = tx[kind]({ text: 'SELECT 1', values: [] });
            await database.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid]);
            await second;
            await first;
          }),
          isConnectionError,
        );
        await pause(20);
        assert.deepEqual(unhandled, []);
      } finally {
        process.removeListener('unhandledRejection', note);
        for (const listener of listeners) process.on('unhandledRejection', listener);
      }
      assert.equal((await database.query<{ one: number }>('SELECT 1 AS one')).rows[0]!.one, 1);
    });

  it('are not committed when one of them failed that nobody waited for', async () => {
    await assert.rejects(
      database.transaction(async (tx) => {
        tx.query('SELECT 1/0');
        await pause(20);
      }),
      /Nothing was committed/,
    );
  });
});
