/** The frame of every mutation, as a service with tables of its own uses it. */
import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { requestId, uuidv7 } from '../../../lib/values/ids.ts';
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { ensureServiceRole } from '../../../mixins/database/migrate.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { errorAttribute } from '../../../mixins/mutation/errors.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { type Mutation, mutate } from '../../../mixins/mutation/mutate.ts';
import { concludeRefusal } from '../../../mixins/mutation/refusal.ts';
import type { Hook, Unit } from '../../../mixins/mutation/unit.ts';
import { createWorld, refusal, type World } from '../data/world.ts';

describe('the frame of mutations', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    for (const service of ['shop', 'approvals']) {
      await world.database.query(`CREATE SCHEMA ${service};
        CREATE TABLE ${service}.rows (tenant_id uuid NOT NULL, name text NOT NULL, UNIQUE (tenant_id, name));
        ALTER TABLE ${service}.rows ENABLE ROW LEVEL SECURITY;
        CREATE POLICY of_tenant ON ${service}.rows USING (tenant_id = current_setting('app.tenant_id')::uuid)`);
      await ensureServiceRole(world.database, service);
    }
  });
  after(async () => {
    for (const service of ['shop', 'approvals'])
      await world?.database.query(`DROP OWNED BY svc_${service} CASCADE; DROP ROLE svc_${service}`);
    await world?.stop();
  });

  const callOf = (name: string, key: string): OperationCall => ({
    operationId: 'shop.rows.create',
    path: {},
    query: {},
    body: { name },
    headers: { idempotencyKey: key },
    fingerprint: hash('sha256', name),
  });

  const requestOf = (): RequestContext => ({
    requestId: requestId(),
    clientRequestId: null,
    tenantId: world.tenantId,
    userId: world.clerk.userId,
    clientId: 'test',
    grantId: 'grant',
    scopes: [],
    agent: false,
    person: true,
    agentRunId: null,
    tokenExpiresAt: null,
    ip: '127.0.0.1',
    channel: 'api',
    deadline: Date.now() + 10_000,
  });

  const insert = (unit: Unit, name: string, service = 'shop'): Promise<unknown> =>
    unit.tx.query(`INSERT INTO ${service}.rows VALUES ($1, $2)`, [unit.request.tenantId, name]);

  /** The whole of a service's mutation. */
  const creating = (name: string, more: Partial<Mutation> = {}): Mutation => ({
    role: { service: 'shop' },
    work: async (unit) => {
      await insert(unit, name);
      unit.audit({ kind: 'create', changes: { name: { from: null, to: name } } });
      unit.emit({ type: 'shop.row.created', data: { name } });
      return { status: 201, headers: { Location: `/rows/${name}` }, body: { name } };
    },
    toError: (error) =>
      sqlState(error) === '23505' && errorAttribute(error, 'table') === 'rows'
        ? new PlatformError('UNIQUE_VALUE_CONFLICT', 'Another row has this name.')
        : null,
    ...more,
  });

  const create = (name: string, key: string = randomUUID(), more: Partial<Mutation> = {}): Promise<OperationReply> =>
    mutate(world.database, requestOf(), callOf(name, key), creating(name, more));

  const names = async (service = 'shop'): Promise<unknown[]> =>
    (await world.database.query(`SELECT name FROM ${service}.rows ORDER BY name`)).rows.map((row) => row['name']);
  const audited = (key: string): Promise<Record<string, unknown>[]> =>
    world.rows('SELECT outcome, code, changes FROM $schema._audit WHERE idempotency_key = $1 ORDER BY tx, audit_id', [
      key,
    ]);
  const events = async (): Promise<unknown[]> =>
    (await world.rows("SELECT data FROM $schema._outbox WHERE type = 'shop.row.created'")).map(({ data }) => data);
  const textOf = ({ body }: OperationReply): string => {
    assert.ok(Buffer.isBuffer(body));
    return body.toString();
  };

  it('commits work, audit, event and outcome, and replays the outcome', async () => {
    const first = await create('once', 'frame-key-1');
    const again = await create('once', 'frame-key-1');
    assert.equal(again.status, 201);
    assert.equal(textOf(again), textOf(first));
    assert.deepEqual(again.headers, { Location: '/rows/once', 'Idempotency-Replayed': 'true' });
    assert.equal((await names()).filter((name) => name === 'once').length, 1);
    const changes = { name: { from: null, to: 'once' } };
    assert.deepEqual(await audited('frame-key-1'), [{ outcome: 'committed', code: null, changes }]);
    assert.deepEqual(await events(), [{ name: 'once' }]);
    assert.equal((await refusal(create('other', 'frame-key-1'))).code, 'IDEMPOTENCY_KEY_REUSED');
  });

  it('does the work once when duplicate requests race', async () => {
    const replies = await Promise.all(Array.from({ length: 6 }, () => create('raced', 'frame-key-2')));
    assert.equal(new Set(replies.map(textOf)).size, 1);
    assert.equal(replies.filter(({ headers }) => headers?.['Idempotency-Replayed'] === undefined).length, 1);
    assert.equal((await names()).filter((name) => name === 'raced').length, 1);
  });

  it('records a refusal, and executes the same request again', async () => {
    await create('taken');
    const key = 'frame-key-3';
    assert.equal((await refusal(create('taken', key))).code, 'UNIQUE_VALUE_CONFLICT');
    assert.deepEqual(await audited(key), [{ outcome: 'failed', code: 'UNIQUE_VALUE_CONFLICT', changes: null }]);
    assert.equal((await refusal(create('free', key))).code, 'IDEMPOTENCY_KEY_REUSED');
    await world.database.query("DELETE FROM shop.rows WHERE name = 'taken'");
    assert.equal((await create('taken', key)).status, 201);
  });

  it('answers a refusal as final only when the database confirms that the key has no outcome', async () => {
    const key = 'frame-key-lost';
    const first = await create('lost', key);
    // The answer of the first attempt was lost, and the second one meets what the first has stored.
    const echo = new PlatformError('UNIQUE_VALUE_CONFLICT', 'Another row has this name.');
    const conclude = (losses: number): Promise<OperationReply> => {
      const database = Object.create(world.database) as Database;
      database.tenant = (tenantId, work) =>
        losses-- > 0
          ? Promise.reject(new Error('Connection terminated unexpectedly'))
          : world.database.tenant(tenantId, work);
      const [request, call] = [requestOf(), callOf('lost', key)];
      return concludeRefusal({ database, request, call, key: idempotencyKey(call, request) }, echo);
    };
    assert.equal(textOf(await conclude(2)), textOf(first));
    const { code, retryAfterSeconds } = await refusal(conclude(Number.POSITIVE_INFINITY));
    assert.deepEqual([code, retryAfterSeconds], ['SERVICE_UNAVAILABLE', 1]);
  });

  describe('dry run of a mutation', () => {
    const tryOut = (name: string, key: string = randomUUID(), more: Partial<Mutation> = {}): Promise<OperationReply> =>
      mutate(world.database, { ...requestOf(), dryRun: true }, callOf(name, key), creating(name, more));

    it('answers a verdict, leaving only an audit entry', async () => {
      const key = randomUUID();
      const before = await events();
      const reply = await tryOut('thought of', key);
      assert.equal(reply.status, 200);
      const { checkOnly, valid, record } = JSON.parse(textOf(reply));
      assert.deepEqual({ checkOnly, valid, record }, { checkOnly: true, valid: true, record: { name: 'thought of' } });
      assert.ok(!(await names()).includes('thought of'));
      assert.deepEqual(await events(), before);
      assert.deepEqual(await audited(key), [{ outcome: 'failed', code: 'CHECK_ONLY', changes: null }]);
      assert.equal((await create('really made', key)).headers?.['Idempotency-Replayed'], undefined);
    });

    it('answers violations of the content', async () => {
      await create('thought of before');
      const { valid, errors } = JSON.parse(textOf(await tryOut('thought of before')));
      assert.equal(valid, false);
      assert.deepEqual(
        errors.map(({ code }: { code: string }) => code),
        ['UNIQUE_VALUE_CONFLICT'],
      );
    });

    it('answers the outcome of the same request when already executed', async () => {
      const key = 'frame-key-6';
      const first = await create('carried out', key);
      for (const more of [{}, { work: () => Promise.reject(new PlatformError('ETAG_MISMATCH', 'It has changed.')) }]) {
        const again = await tryOut('carried out', key, more);
        assert.equal(again.headers?.['Idempotency-Replayed'], 'true');
        assert.equal(textOf(again), textOf(first));
      }
      const lost = { work: () => Promise.reject(new PlatformError('OBJECT_NOT_FOUND', 'There is none.')) };
      assert.equal((await refusal(tryOut('carried out', key, lost))).code, 'OBJECT_NOT_FOUND');
      assert.equal((await refusal(tryOut('something else', key))).code, 'IDEMPOTENCY_KEY_REUSED');
    });
  });

  it('commits two tasks of a unit together or not at all', async () => {
    const both = (second: string): Partial<Mutation> => ({
      work: async (unit) => {
        await insert(unit, 'task one');
        await insert(unit, second);
        return { body: null };
      },
    });
    await create('task one taken');
    assert.equal((await refusal(create('tasks', undefined, both('task one taken')))).code, 'UNIQUE_VALUE_CONFLICT');
    assert.ok(!(await names()).includes('task one'));
    assert.equal((await create('tasks', undefined, both('task two'))).status, 200);
    assert.deepEqual(
      (await names()).filter((name) => String(name).startsWith('task')),
      ['task one', 'task one taken', 'task two'],
    );
  });

  it('leaves claim and commit of a part to its unit', async () => {
    const inParts: Partial<Mutation> = {
      work: async (unit) => {
        const part = unit.part();
        assert.equal(await part.claim(), null, 'the key is that of the whole');
        for (const name of ['part one', 'part two']) {
          const sql = new Sql();
          const values = `${sql.bind(unit.request.tenantId, 'uuid')}, ${sql.bind(name, 'text')}`;
          const row = await part.commit(sql.statement(`INSERT INTO shop.rows VALUES (${values}) RETURNING name`));
          assert.deepEqual(row, { name });
        }
        throw new PlatformError('VALIDATION_FAILED', 'The third part is not valid.');
      },
    };
    assert.equal((await refusal(create('parts', undefined, inParts))).code, 'VALIDATION_FAILED');
    assert.deepEqual(
      (await names()).filter((name) => String(name).startsWith('part')),
      [],
    );
  });

  it('runs the hooks of other services in the transaction, as their role', async () => {
    const approval = (allowed: boolean): Hook => ({
      role: { service: 'approvals' },
      run: async (unit) => {
        await insert(unit, 'used', 'approvals');
        if (!allowed) throw new PlatformError('AGENT_POLICY_DENIED', 'The approval was withdrawn.');
      },
    });
    const key = 'frame-key-5';
    assert.equal((await refusal(create('hooked', key, { hooks: [approval(false)] }))).code, 'AGENT_POLICY_DENIED');
    assert.ok(!(await names()).includes('hooked'));
    assert.deepEqual(await names('approvals'), []);
    assert.equal((await create('hooked', key, { hooks: [approval(true)] })).status, 201);
    assert.deepEqual(await names('approvals'), ['used']);
  });

  describe('under a run', () => {
    const beginRun = async (more: { maxRecords?: number; expiresIn?: string } = {}): Promise<string> => {
      const runId = uuidv7();
      await world.database.query(
        `INSERT INTO agent.runs (tenant_id, run_id, agent_key, goal, dry_run, user_id, client_id, grant_id, max_cost,
          max_mutations, max_records, expires_at)
        VALUES ($1, $2, 'test', 'Tests.', false, $3, 'test', 'grant', 500, 20, $4, now() + $5::interval)`,
        [world.tenantId, runId, world.clerk.userId, more.maxRecords ?? 20, more.expiresIn ?? '1 hour'],
      );
      return runId;
    };
    const FINGERPRINT = hash('sha256', 'approved');
    /** Of a change that leaves nothing in the trail. */
    const basis = JSON.stringify({ at: 0, configuration: null, plan: null, effects: [] });
    const approve = async (runId: string, status = 'APPROVED', expiresIn = '1 hour'): Promise<string> => {
      const id = uuidv7();
      await world.database.query(
        `INSERT INTO agent.approvals (tenant_id, approval_id, run_id, status, user_id, operation_id, method, path,
          path_parameters, risk, summary, query, headers, body_omitted, fingerprint, idempotency_key, required_approvals,
          approvers, allow_self_approval, escalate_to, expires_at)
        VALUES ($1, $2, $3, $4, $5, 'shop.rows.create', 'POST', '/rows', '{}', 'high', 'POST rows', '{}', '{}', false, $6,
          'key', 1, '[]', false, '[]', now() + $7::interval)`,
        [world.tenantId, id, runId, status, world.clerk.userId, FINGERPRINT, expiresIn],
      );
      return id;
    };
    const statusOf = async (id: string): Promise<unknown> =>
      (await world.database.query('SELECT status FROM agent.approvals WHERE approval_id = $1', [id])).rows[0]?.[
        'status'
      ];
    const recordsOf = async (runId: string): Promise<unknown> =>
      (await world.database.query('SELECT records_changed AS n FROM agent.runs WHERE run_id = $1', [runId])).rows[0]?.[
        'n'
      ];
    /** A service that may ask agent. */
    const createUnder = (
      name: string,
      agentRunId: string,
      approval: RequestContext['approval'] | null = null,
      key: string = randomUUID(),
      more: Partial<Mutation> = {},
    ): Promise<OperationReply> =>
      mutate(world.database, { ...requestOf(), agentRunId, ...(approval ? { approval } : {}) }, callOf(name, key), {
        ...creating(name, more),
        role: 'tenant',
        work: more.work ?? (async () => ({ status: 201, body: { name } })),
      });

    it('commits while the run is active, and counts', async () => {
      const runId = await beginRun();
      assert.equal((await createUnder('a', runId)).status, 201);
      assert.equal(await recordsOf(runId), 1);
    });

    it('commits nothing when the run has ended meanwhile', async () => {
      for (const runId of [uuidv7(), await beginRun({ expiresIn: '-1 second' })])
        assert.equal((await refusal(createUnder('b', runId))).code, 'RUN_NOT_ACTIVE');
      const runId = await beginRun();
      const late = createUnder('b', runId, null, randomUUID(), {
        work: async () => {
          await world.database.query(`UPDATE agent.runs SET status = 'CANCELED', ended_at = now() WHERE run_id = $1`, [
            runId,
          ]);
          return { status: 201, body: null };
        },
      });
      assert.equal((await refusal(late)).code, 'RUN_NOT_ACTIVE');
      assert.equal(await recordsOf(runId), 0);
    });

    it('never exceeds the record budget of the run', async () => {
      const runId = await beginRun({ maxRecords: 5 });
      const outcomes = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => createUnder(`c${i}`, runId)));
      const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
      assert.deepEqual(
        refusals,
        Array.from({ length: 7 }, () => 'AGENT_BUDGET_EXCEEDED'),
      );
      assert.equal(await recordsOf(runId), 5);
      const many = (count: number): Partial<Mutation> => ({
        work: async (unit) => {
          unit.tally.records = count;
          return { body: null };
        },
      });
      const other = await beginRun({ maxRecords: 5 });
      assert.equal((await refusal(createUnder('d', other, null, randomUUID(), many(6)))).code, 'AGENT_BUDGET_EXCEEDED');
      assert.equal((await createUnder('d', other, null, randomUUID(), many(5))).status, 200);
    });

    it('consumes an approval together with the change, once', async () => {
      const runId = await beginRun();
      const id = await approve(runId);
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, () => createUnder('e', runId, { id, fingerprint: FINGERPRINT, basis })),
      );
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
      const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
      assert.deepEqual(new Set(codes), new Set(['APPROVAL_REQUIRED']));
      assert.equal(await statusOf(id), 'CONSUMED');
      assert.equal(await recordsOf(runId), 1);
    });

    it('consumes nothing when the change fails, and replays the outcome afterwards', async () => {
      const runId = await beginRun();
      const approval = { id: await approve(runId), fingerprint: FINGERPRINT, basis };
      const key = randomUUID();
      const failing = { work: () => Promise.reject(new PlatformError('ETAG_MISMATCH', 'It has changed.')) };
      assert.equal((await refusal(createUnder('f', runId, approval, key, failing))).code, 'ETAG_MISMATCH');
      assert.equal(await statusOf(approval.id), 'APPROVED');
      assert.equal((await createUnder('f', runId, approval, key)).headers?.['Idempotency-Replayed'], undefined);
      assert.equal(await statusOf(approval.id), 'CONSUMED');
      assert.equal((await createUnder('f', runId, approval, key)).headers?.['Idempotency-Replayed'], 'true');
      assert.equal(await recordsOf(runId), 1);
    });

    it('executes only the approved request, and ends an approval for another one', async () => {
      const runId = await beginRun();
      const other: Partial<Mutation> = {
        work: async (unit) => {
          unit.audit({ changes: { name: { from: null, to: 'other' } } });
          return { status: 201, body: { name: 'other' } };
        },
      };
      for (const approved of [basis, undefined]) {
        const id = await approve(runId);
        const approval = { id, fingerprint: FINGERPRINT, ...(approved === undefined ? {} : { basis: approved }) };
        const failure = await refusal(createUnder('h', runId, approval, randomUUID(), other));
        assert.deepEqual([failure.code, failure.details?.['changed']], ['APPROVAL_STALE', ['effects']]);
        assert.equal(await statusOf(id), 'CANCELED');
        assert.equal((await refusal(createUnder('h', runId, approval))).code, 'APPROVAL_STALE');
      }
      assert.equal(await recordsOf(runId), 0);
    });

    it('refuses an approval of another request, run or time', async () => {
      const runId = await beginRun();
      const use = async (id: string, fingerprint = FINGERPRINT, run = runId) =>
        (await refusal(createUnder('g', run, { id, fingerprint }))).code;
      const id = await approve(runId);
      assert.equal(await use(id, hash('sha256', 'another')), 'APPROVAL_FINGERPRINT_MISMATCH');
      assert.equal(await use(id, FINGERPRINT, await beginRun()), 'APPROVAL_REQUIRED');
      assert.equal(await statusOf(id), 'APPROVED');
      await world.database.query('DELETE FROM agent.approvals WHERE approval_id = $1', [id]);
      assert.equal(await use(await approve(runId, 'PENDING')), 'APPROVAL_PENDING');
      await world.database.query('DELETE FROM agent.approvals WHERE run_id = $1', [runId]);
      assert.equal(await use(await approve(runId, 'REJECTED')), 'APPROVAL_REJECTED');
      assert.equal(await use(await approve(runId, 'APPROVED', '-1 second')), 'APPROVAL_EXPIRED');
    });

    it('refuses access for another tenant', async () => {
      const runId = await beginRun();
      for (const text of [
        `SELECT agent.continue_run('${world.otherTenantId}', '${runId}', 1)`,
        `SELECT agent.consume_approval('${world.otherTenantId}', '${uuidv7()}', '${runId}', '', '')`,
      ]) {
        const asking = world.database.shared('data', world.tenantId, (tx) => tx.query(text));
        await assert.rejects(asking, (error) => sqlState(error) === '42501');
      }
      await assert.rejects(
        world.database.tenantTransaction(world.tenantId, (tx) =>
          tx.query(`SELECT agent.continue_run('${world.tenantId}', '${runId}', 1)`),
        ),
        (error) => sqlState(error) === '42501',
      );
    });
  });

  it('limits work and hooks to the tables of their role', async () => {
    const reading = (text: string): Partial<Mutation> => ({
      work: async (unit) => {
        await unit.tx.query(text);
        return { body: null };
      },
    });
    const schema = (tenantId: string): string => `t_${tenantId.replaceAll('-', '')}`;
    for (const table of [
      'approvals.rows',
      `${schema(world.tenantId)}._audit`,
      `${schema(world.otherTenantId)}._audit`,
    ]) {
      const error = await refusal(create('reading', undefined, reading(`SELECT FROM ${table}`)));
      assert.equal(error.code, 'INTERNAL_ERROR');
      assert.equal(sqlState(error.cause), '42501');
    }
  });
});
