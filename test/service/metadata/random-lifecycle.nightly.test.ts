/**
 * Random sequences of deployments, validations, quick deploys, cancellations, lost workers and connections, and
 * rollbacks. After each step the tables of the tenant, its components, its snapshot and what a retrieve gives agree, and
 * what was not applied has left nothing. LIFECYCLE_RUNS=100 tries more, LIFECYCLE_SEED tries those of a failure again.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { locate } from '../../../lib/metadata/paths.ts';
import { COMPONENT_TYPES } from '../../../lib/schema/snapshot.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import type { State } from '../../../services/metadata/kinds/component.ts';
import {
  loadState,
  readSnapshot,
  requireTenant,
  storedRetained,
  tenantInfo,
} from '../../../services/metadata/store.ts';
import { parseComponents } from '../../../services/metadata/stored-state.ts';
import { configuration, GROUND, OBJECTS, surroundings } from '../../support/metadata-configurations.ts';
import {
  createMetadataTenant,
  destructiveManifest,
  type MetadataTenant,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { shapes } from '../../support/physical-shape.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { insertQuietly } from '../../support/quiet-deployment.ts';

const RUNS = Number(process.env['LIFECYCLE_RUNS'] ?? 5);
const SEED = process.env['LIFECYCLE_SEED'];
const ENDED = ['SUCCEEDED', 'FAILED', 'CANCELED'];
const PATIENCE_MS = 180_000;

type Files = Record<string, string>;

/** One in eight names what is nowhere. */
const spoilt = fc.option(
  fc.constant({ 'roles/Lost.yaml': 'type: Role\napiName: Lost\nlabel: Lost\nparent: Nobody\n' }),
  {
    nil: {},
    freq: 7,
  },
);
const project = fc
  .tuple(
    configuration,
    surroundings,
    fc.oneof({ weight: 7, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: spoilt }),
  )
  .map(([objects, ...others]): Files => {
    const published = Object.entries(objects).map(([path, text]) => [
      path,
      text.replace('\nfeatures:', '\napi:\n  published: true\nfeatures:'),
    ]);
    return Object.assign(Object.fromEntries(published), ...others);
  });
const delay = fc.integer({ min: 0, max: 250 });
const picks = fc.array(fc.nat(), { minLength: 1, maxLength: 4 });

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('deploy' as const), files: project }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('delete' as const), picks, files: project, with: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('validate' as const), files: project, quick: fc.boolean() }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('rollback' as const), back: fc.integer({ min: 0, max: 2 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), files: project, delay }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cut' as const), files: project, delay }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const), files: project, delay }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('together' as const), files: project, others: project }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('records' as const), object: fc.constantFrom(...OBJECTS) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Types of components that cannot be deleted here. */
const KEPT: readonly string[] = ['Profile', 'TenantSettings'];

/** Values for the fields that a record may have to have. */
const VALUES: Readonly<Record<string, (n: number) => unknown>> = {
  Text__c: (n) => `text ${n}`,
  Sized__c: () => 's',
  Note__c: () => 'note',
  Money__c: (n) => n,
  Count__c: (n) => n,
  When__c: () => '2026-01-01T00:00:00Z',
};

/** A deployment that was applied, and the files of the tenant before it. */
interface Applied {
  readonly deploymentId: string;
  readonly before: Files;
}

describe('metadata: any sequence of deployments', function () {
  this.timeout(30 * 60_000);
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ seed: false });
  });
  after(() => platform?.stop());

  it('leaves tables, components, snapshot and retrieve in agreement, and can be undone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 12 }), async (steps) => {
        const tenant = await createMetadataTenant(platform);
        try {
          await tenant.deployed(GROUND);
          const run = new Run(tenant);
          for (const one of steps) await run.take(one);
        } finally {
          await tenant.database.close();
        }
      }),
      // A failing sequence is reported without shrinking: each run takes seconds.
      { numRuns: RUNS, endOnFailure: true, ...(SEED === undefined ? {} : { seed: Number(SEED) }) },
    );
  });
});

class Run {
  readonly #tenant: MetadataTenant;
  #applied: Applied[] = [];
  #files: Files | null = null;
  #made = 0;
  /** Deleted components that are still kept: a project with one is refused. */
  #reserved: ReadonlySet<string> = new Set();

  constructor(tenant: MetadataTenant) {
    this.#tenant = tenant;
  }

  async take(one: Step): Promise<void> {
    const before = (this.#files ??= await this.#retrieve());
    const ids = await this.#do(one);
    let files = before;
    for (const id of ids) {
      const done = await this.#ended(id);
      const changed = done.metadataVersionAfter !== null && done.metadataVersionAfter !== done.metadataVersionBefore;
      const what = JSON.stringify([one.kind, done.status, done.error, done.blocked?.[0]]);
      assert.equal(changed && done.status !== 'SUCCEEDED', false, what);
      // A cut connection or a killed worker is no reason to fail.
      if (done.error) assert.notEqual(done.error.code, 'APPLY_FAILED', what);
      if (!changed) continue;
      if (ids.length === 1) {
        if (one.kind === 'rollback') this.#undone(one.back, await this.#retrieve());
        this.#applied.push({ deploymentId: id, before });
      } else this.#applied = [];
      files = await this.#retrieve();
    }
    this.#files = await this.#retrieve();
    assert.deepEqual(this.#files, files, `${one.kind} changed something that it did not say`);
    await this.#agrees(this.#files);
  }

  /** The ids of the deployments that come of a step. */
  async #do(one: Step): Promise<string[]> {
    const t = this.#tenant;
    switch (one.kind) {
      case 'deploy':
        return [await this.#accepted(this.#free(one.files))];
      case 'delete':
        return [await this.#accepted(...this.#deletion(one.picks, one.with ? this.#free(one.files) : {}))];
      case 'validate': {
        const validationId = await this.#accepted(this.#free(one.files), { checkOnly: true });
        const done = await this.#ended(validationId);
        if (!one.quick || done.status !== 'SUCCEEDED') return [validationId];
        return [await this.#submit({ quickDeploy: { validationId } })];
      }
      case 'rollback': {
        const last = this.#applied.at(-1 - one.back);
        const body = last && { rollback: { deploymentId: last.deploymentId } };
        const id = body ? await this.#submit(body).catch(() => null) : null;
        if (last && one.back === 0) assert.ok(id, 'The last deployment can be rolled back.');
        return id ? [id] : [];
      }
      case 'cancel': {
        const id = await this.#accepted(this.#free(one.files));
        await pause(one.delay);
        await t
          .call('metadata.deployments.cancel', {
            path: { deploymentId: id },
            headers: { idempotencyKey: randomUUID() },
          })
          .catch((error: { code?: string }) => assert.equal(error.code, 'DEPLOYMENT_NOT_CANCELABLE'));
        return [id];
      }
      case 'cut': {
        const id = await this.#accepted(this.#free(one.files));
        await pause(one.delay);
        await t.database.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'metadata test'`,
        );
        return [id];
      }
      case 'kill':
        return [await this.#killed(this.#free(one.files), one.delay)];
      case 'together':
        return [await this.#accepted(one.files), await this.#accepted(one.others)];
      case 'records':
        await this.#records(one.object);
        return [];
    }
  }

  /** The files whose names are not reserved. */
  #free(files: Files): Files {
    return Object.fromEntries(
      Object.entries(files).filter(([path]) => {
        const found = locate(path);
        return found && !this.#reserved.has(found.fullName) && !this.#reserved.has(found.object ?? '');
      }),
    );
  }

  /** A destructive manifest of some of the components that are there. */
  #deletion(chosen: readonly number[], files: Files): [Files, object] {
    const there = Object.keys(this.#files ?? {})
      .flatMap((path) => locate(path) ?? [])
      .filter(({ type, object, apiName }) => (object ?? apiName) !== 'User' && !KEPT.includes(type));
    const members = chosen.flatMap((n) => there[n % there.length] ?? []);
    const types = Map.groupBy(members, ({ type }) => type);
    const named = Object.fromEntries(
      [...types].map(([type, found]) => [type, [...new Set(found.map(({ fullName }) => fullName))]]),
    );
    const gone = new Set(members.map(({ fullName }) => fullName));
    const kept = Object.entries(files).filter(([path]) => {
      const found = locate(path);
      return found && !gone.has(found.fullName) && !gone.has(found.object ?? '');
    });
    return [{ ...Object.fromEntries(kept), ...destructiveManifest(named) }, { allowDestructiveChanges: true }];
  }

  /** A rollback gives the texts of before byte for byte, where nothing else came after. */
  #undone(back: number, now: Files): void {
    const index = this.#applied.length - 1 - back;
    const undone = this.#applied[index];
    if (undone && back === 0) assert.deepEqual(now, undone.before, 'The inverse restores what was there before.');
    if (back > 0) this.#applied = [];
  }

  async #submit(body: object): Promise<string> {
    const { json } = await this.#tenant.call('metadata.deployments.create', {
      body,
      headers: { idempotencyKey: randomUUID() },
    });
    return json.deploymentId;
  }

  #accepted(files: Files, more: object = {}): Promise<string> {
    return this.#submit({ files, package: wholePackage(files), ...more });
  }

  /** The worker is a process of its own, killed after a while; another one takes over. */
  async #killed(files: Files, after: number): Promise<string> {
    const { database, tenantId, platform } = this.#tenant;
    const deploymentId = await insertQuietly(this.#tenant, files);
    const worker = spawn(
      process.execPath,
      ['--input-type=module', '-e', "await import('./worker-process.ts')", platform.database.url, tenantId, '60'],
      { cwd: import.meta.dirname, stdio: ['ignore', 'inherit', 'inherit'] },
    );
    const exited = once(worker, 'exit');
    const status = async (): Promise<string> => {
      const { rows } = await database.query<{ status: string }>(
        'SELECT status FROM metadata.deployments WHERE deployment_id = $1',
        [deploymentId],
      );
      return rows[0]!.status;
    };
    while ((await status()) === 'QUEUED') {
      assert.equal(worker.exitCode, null, 'The worker takes the deployment.');
      await pause(5);
    }
    await pause(after);
    worker.kill('SIGKILL');
    await exited;
    await database.query('UPDATE metadata.deployments SET lease_until = now() WHERE deployment_id = $1', [
      deploymentId,
    ]);
    await this.#ended(await this.#accepted({}, { checkOnly: true }));
    return deploymentId;
  }

  /** The deployment, when it has ended; asked for again while the database drops connections. */
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
  async #ended(deploymentId: string): Promise<any> {
    const { database, tenantId } = this.#tenant;
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await pause(20)) {
      const { rows } = await database.query<{ applying: number }>(
        `SELECT count(*)::integer AS applying FROM metadata.deployments
          WHERE tenant_id = $1 AND status IN ('VALIDATING', 'APPLYING', 'CANCELING')`,
        [tenantId],
      );
      assert.ok(rows[0]!.applying <= 1, 'One deployment of a tenant is under way at a time.');
      const found = await this.#tenant.call('metadata.deployments.get', { path: { deploymentId } }).catch(() => null);
      if (found && ENDED.includes(found.json.status)) return found.json;
    }
    const { rows } = await database.query(
      `SELECT deployment_id, status, takes, lease_until, now(), cancel_requested FROM metadata.deployments
        WHERE tenant_id = $1 AND status NOT IN ('SUCCEEDED', 'FAILED', 'CANCELED') ORDER BY queue_number`,
      [tenantId],
    );
    throw new Error(`${deploymentId} did not end within ${PATIENCE_MS / 1_000} s: ${JSON.stringify(rows)}`);
  }

  async #retrieve(): Promise<Files> {
    const types = Object.fromEntries(COMPONENT_TYPES.map((name) => [name, ['*']]));
    const { files } = await this.#tenant.retrieve(types);
    return Object.fromEntries(Object.entries<string>(files).filter(([path]) => locate(path)));
  }

  /** Some records, as far as the fields of the object let them in. */
  async #records(object: string): Promise<void> {
    const fields = Object.entries(VALUES).filter(([name]) => this.#files?.[`objects/${object}/fields/${name}.yaml`]);
    const values = (): object => Object.fromEntries(fields.map(([name, value]) => [name, value(++this.#made)]));
    for (let i = 0; i < 3; i++)
      await this.#tenant
        .call('data.records.create', {
          path: { objectApiName: object },
          body: { name: `Record ${i}`, ...values() },
          headers: { idempotencyKey: randomUUID() },
        })
        .catch(() => {});
  }

  async #agrees(files: Files): Promise<void> {
    const { database, tenantId } = this.#tenant;
    const { state, retained, snapshot, tenant } = await database.shared('metadata', tenantId, async (tx) => ({
      state: (await loadState(tx, tenantId)) as State,
      retained: parseComponents(await storedRetained(tx, tenantId)),
      snapshot: await readSnapshot(tx, tenantId, null),
      tenant: await requireTenant(tx, tenantId),
    }));
    const version = tenant.metadataVersion;
    this.#reserved = new Set([...retained.values()].map(({ fullName }) => fullName));
    assert.deepEqual(files, Object.fromEntries([...state.values()].map(({ path, yaml }) => [path, yaml])));
    for (const { yaml, hash, changedAtVersion } of state.values()) {
      assert.equal(createHash('sha256').update(yaml).digest('hex'), hash);
      assert.ok(changedAtVersion <= version);
    }
    const compiled = compileSnapshot(tenantInfo(tenant), version, state);
    assert.equal(snapshot?.version, version);
    assert.deepEqual(JSON.parse(snapshot.snapshot.toString()), JSON.parse(JSON.stringify(compiled)));
    const { rows } = await database.query<{ version: number }>(
      `SELECT metadata_version AS version FROM ${this.#tenant.schema}._state`,
    );
    assert.equal(rows[0]?.version, version);
    const { actual, expected } = await shapes(database, tenantId, state, retained);
    assert.deepEqual(actual, expected);
  }
}
