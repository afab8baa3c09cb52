import assert from 'node:assert/strict';
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
  const heavy = (): Uint8Array => {
    const text = Array.from({ length: 12_000 }, (_, i) => `k${i}: v`).join('\n');
    return bodyOf(Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`roles/R${i}.yaml`, text])));
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

  it('hand on what a task refuses, with its violations', async () => {
    withLimits({});
    const error = await refusalOf(accept(bodyOf({ 'roles/A.yaml': 'a: "' })));
    assert.deepEqual([error.code, error.errors?.[0]?.pointer], ['YAML_INVALID', '/files/roles~1A.yaml']);
  });

  it('end with a task that takes too long, and a new one takes the next', async () => {
    withLimits({ threads: 1, taskMs: 5_000 });
    await accept(bodyOf({}));
    const body = Buffer.from('{"package":{"version":1,"types":[]}}');
    const input = { body, where: { tenantId: 'tenant', version: 1 }, baseUrl: '', now: 0 };
    const never = new Promise<never>(() => {});
    const door = { state: () => never, retained: () => never, rows: () => never, unchangedSince: () => never };
    const error = await refusalOf(planning.run('tenant', 'retrieve', input, { door }));
    assert.deepEqual([error.code, error.details], ['TOO_MANY_ITEMS', { maxSeconds: 5 }]);
    assert.equal((await accept(bodyOf({}))).form, 'project');
  });

  it('end with a task that takes too much memory', async () => {
    withLimits({ memoryMb: 32, taskMs: 55_000 });
    const values = Array.from({ length: 8_000 }, (_, i) => `  - value: v${i}\n    label: v${i}`).join('\n');
    const set = (name: string): string => `type: ValueSet\napiName: ${name}\nlabel: ${name}\nvalues:\n${values}\n`;
    const files = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`valueSets/V${i}.yaml`, set(`V${i}`)]));
    const error = await refusalOf(accept(bodyOf(files)));
    assert.deepEqual([error.code, error.details], ['TOO_MANY_ITEMS', { maxMb: 32 }]);
  });

  it('end with a task whose question cannot be answered', async () => {
    withLimits({ threads: 1 });
    const lost = Promise.reject(new Error('The database is lost.'));
    lost.catch(() => {});
    const door = { state: () => lost, retained: () => lost, rows: () => lost, unchangedSince: () => lost };
    const body = Buffer.from('{"package":{"version":1,"types":[]}}');
    const input = { body, where: { tenantId: 'tenant', version: 1 }, baseUrl: '', now: 0 };
    await assert.rejects(planning.run('tenant', 'retrieve', input, { door }), /The database is lost/);
    assert.equal((await accept(bodyOf({}))).form, 'project');
  });

  it('leave the thread that asked free', async () => {
    withLimits({ taskMs: 55_000 });
    const body = heavy();
    await accept(bodyOf({}));
    const before = process.threadCpuUsage();
    await accept(body);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok((user + system) / 1_000 < 250, `${(user + system) / 1_000} ms`);
  });
});
