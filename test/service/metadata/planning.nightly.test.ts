import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { Planning, type PlanningLimits } from '../../../services/metadata/planning/planning.ts';

describe('metadata: planning threads', function () {
  this.timeout(60_000);
  let planning: Planning;
  const withLimits = (limits: Partial<PlanningLimits>): void => {
    planning = new Planning(limits);
  };
  afterEach(() => planning?.close());

  const bodyOf = (files: Record<string, string>): Uint8Array =>
    Buffer.from(JSON.stringify({ files, package: { version: 1, types: [] } }));
  /** Seconds of work. */
  const heavy = (count = 4): Uint8Array => {
    const text = Array.from({ length: 12_000 }, (_, i) => `k${i}: v`).join('\n');
    return bodyOf(Object.fromEntries(Array.from({ length: count }, (_, i) => [`roles/R${i}.yaml`, text])));
  };
  const accept = (body: Uint8Array) => planning.run('tenant', 'accept', { body, head: '' });
  const refusalOf = async (work: Promise<unknown>): Promise<PlatformError> => {
    const error: unknown = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof PlatformError, String(error));
    return error;
  };

  it('pass on the error of a task, with its violations', async () => {
    withLimits({});
    const error = await refusalOf(accept(bodyOf({ 'roles/A.yaml': 'a: "' })));
    assert.deepEqual([error.code, error.errors?.[0]?.pointer], ['YAML_INVALID', '/files/roles~1A.yaml']);
  });

  it('are replaced after a task that takes too much CPU time', async () => {
    withLimits({ threads: 1, processorMs: 200 });
    const error = await refusalOf(accept(heavy()));
    assert.deepEqual([error.code, error.details], ['TOO_MANY_ITEMS', { maxSeconds: 0.2 }]);
    assert.equal((await accept(bodyOf({}))).form, 'project');
  });

  it('do not count time without a processor against a project', async function () {
    this.timeout(180_000);
    const busy = 'const end = Date.now() + 120_000; while (Date.now() < end) Math.sqrt(end);';
    const others = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', busy]));
    try {
      const quiet = new Planning({ threads: 1 });
      const began = process.cpuUsage();
      await quiet.run('tenant', 'accept', { body: heavy(1), head: '' });
      await quiet.close();
      const { user, system } = process.cpuUsage(began);
      const neededMs = (user + system) / 1_000;
      withLimits({ threads: 1, processorMs: 2 * neededMs });
      const asked = performance.now();
      assert.equal((await accept(heavy(1))).form, 'project');
      const tookMs = performance.now() - asked;
      assert.ok(tookMs > neededMs, `${tookMs} ms for ${neededMs} ms of work: nothing competed`);
    } finally {
      for (const other of others) other.kill('SIGKILL');
    }
  });

  it('refuse a task that waits too long, so that the request is answered in time', async () => {
    withLimits({ threads: 1, waitMs: 300 });
    await accept(bodyOf({}));
    const never = new Promise<never>(() => {});
    const door = { state: () => never, retained: () => never, rows: () => never, unchangedSince: () => never };
    const body = Buffer.from('{"package":{"version":1,"types":[]}}');
    const input = { body, where: { tenantId: 'tenant', version: 1 }, baseUrl: '', now: 0 };
    const ended = new AbortController();
    const holding = planning.run('tenant', 'retrieve', input, { door, signal: ended.signal });
    holding.catch(() => {});
    const own = await refusalOf(accept(bodyOf({})));
    assert.deepEqual([own.code, own.retryAfterSeconds], ['CONCURRENCY_LIMIT_EXCEEDED', 5]);
    const others = await refusalOf(planning.run('another', 'accept', { body: bodyOf({}), head: '' }));
    assert.deepEqual([others.code, others.retryAfterSeconds], ['SERVICE_UNAVAILABLE', 5]);
    ended.abort(new Error('The test ends it.'));
    await assert.rejects(holding, /The test ends it/);
  });

  it('are replaced after a task that outlives its request', async () => {
    withLimits({ threads: 1, taskMs: 5_000 });
    await accept(bodyOf({}));
    const body = Buffer.from('{"package":{"version":1,"types":[]}}');
    const input = { body, where: { tenantId: 'tenant', version: 1 }, baseUrl: '', now: 0 };
    const never = new Promise<never>(() => {});
    const door = { state: () => never, retained: () => never, rows: () => never, unchangedSince: () => never };
    const error = await refusalOf(planning.run('tenant', 'retrieve', input, { door }));
    assert.deepEqual([error.code, error.retryAfterSeconds], ['SERVICE_UNAVAILABLE', 5]);
    assert.equal((await accept(bodyOf({}))).form, 'project');
  });

  it('are replaced after a task that takes too much memory', async () => {
    withLimits({ memoryMb: 32, taskMs: 55_000 });
    const values = Array.from({ length: 8_000 }, (_, i) => `  - value: v${i}\n    label: v${i}`).join('\n');
    const set = (name: string): string => `type: ValueSet\napiName: ${name}\nlabel: ${name}\nvalues:\n${values}\n`;
    const files = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`valueSets/V${i}.yaml`, set(`V${i}`)]));
    const error = await refusalOf(accept(bodyOf(files)));
    assert.deepEqual([error.code, error.details], ['TOO_MANY_ITEMS', { maxMb: 32 }]);
  });

  it('are replaced after a task whose query cannot be answered', async () => {
    withLimits({ threads: 1 });
    const lost = Promise.reject(new Error('The database is lost.'));
    lost.catch(() => {});
    const door = { state: () => lost, retained: () => lost, rows: () => lost, unchangedSince: () => lost };
    const body = Buffer.from('{"package":{"version":1,"types":[]}}');
    const input = { body, where: { tenantId: 'tenant', version: 1 }, baseUrl: '', now: 0 };
    await assert.rejects(planning.run('tenant', 'retrieve', input, { door }), /The database is lost/);
    assert.equal((await accept(bodyOf({}))).form, 'project');
  });

  it('do not block the calling thread', async () => {
    withLimits({ taskMs: 55_000 });
    const body = heavy();
    await accept(bodyOf({}));
    const before = process.threadCpuUsage();
    await accept(body);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok((user + system) / 1_000 < 250, `${(user + system) / 1_000} ms`);
  });
});
