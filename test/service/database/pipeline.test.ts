/** Statements that travel together, and the connection that they lose. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database, isConnectionError } from '../../../mixins/database/database.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('pipelined statements', () => {
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

  for (const kind of ['query', 'all'] as const)
    it(`fail together when the connection is lost, and the process continues (${kind})`, async () => {
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

  it('fail with the reason, whichever of them is awaited first', async () => {
    const holder = await database.pool.connect();
    try {
      await holder.query('CREATE TABLE public.held (id int)');
      await holder.query('BEGIN');
      await holder.query('LOCK TABLE public.held');
      for (const kind of ['query', 'all', 'first', 'one'] as const)
        await assert.rejects(
          database.transaction(async (tx) => {
            tx.query("SET LOCAL lock_timeout = '20ms'");
            const locking = tx.query('SELECT FROM public.held FOR UPDATE');
            await tx[kind]({ name: `behind ${kind}`, text: 'SELECT 1 AS one' });
            await locking;
          }),
          { code: '55P03' },
          kind,
        );
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
    }
  });

  it('fail with the reason of the last failure, where an earlier one was undone', async () => {
    await assert.rejects(
      database.transaction(async (tx) => {
        tx.query('SAVEPOINT before');
        await assert.rejects(tx.query('SELECT 1/0'), { code: '22012' });
        tx.query('ROLLBACK TO before');
        tx.query('SELECT FROM public.absent');
        await tx.query('SELECT 1');
      }),
      { code: '42P01' },
    );
  });

  it('are not committed when one that was not awaited failed', async () => {
    await assert.rejects(
      database.transaction(async (tx) => {
        tx.query('SELECT 1/0');
        await pause(20);
      }),
      { code: '22012' },
    );
  });
});
