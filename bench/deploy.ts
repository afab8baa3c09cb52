/**
 * Effect of deployments on writers: `node bench/deploy.ts [--rows 1000000] [--writers 8] [--beside <folder>]
 * [--only "add a field;…"] [--out <file>]`. It starts an instance of its own with so many invoices, lets writers create
 * and update invoices over HTTP without pause, and deploys one change after the other. Prints a Markdown table: how
 * long each deployment took, the longest gap between two answers to any one writer, the latency of writes before and
 * during it, and the answers that were no success. With --beside another checkout is measured in turn.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { tenantSchema } from '../lib/context.ts';
import { Database } from '../mixins/database/database.ts';
import { freePort, startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { type createBenchTenant, root, tokenFor } from './tenant.ts';

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    writers: { type: 'string', default: '8' },
    /** Of writes before each deployment. */
    seconds: { type: 'string', default: '5' },
    beside: { type: 'string' },
    only: { type: 'string' },
    out: { type: 'string' },
  },
});
const ROWS = Number(options.rows);
const WRITERS = Number(options.writers);
const PARENTS = Math.max(1, Math.round(ROWS / 100));
const CUSTOMER = 'StallCustomer__c';
const INVOICE = 'StallInvoice__c';
const DEPLOYMENT_MAX_MS = 20 * 60_000;

type Files = Record<string, string>;

/** A component's file; everything but the first lines is YAML of the caller. */
const file = (type: string, folder: string, apiName: string, more: string, object = INVOICE): Files => ({
  [`objects/${object}/${folder}/${apiName}.yaml`]: `type: ${type}\napiName: ${apiName}\nobject: ${object}\n${more}\n`,
});
const field = (apiName: string, more: string, object = INVOICE): Files =>
  file('CustomField', 'fields', apiName, `label: ${apiName.replace('__c', '')}\n${more}`, object);
const object = (apiName: string, search: readonly string[], sharing = 'readWrite'): Files => ({
  [`objects/${apiName}/object.yaml`]: `type: CustomObject
apiName: ${apiName}
label: ${apiName.replace('__c', '')}
labelPlural: ${apiName.replace('__c', 's')}
nameField:
  label: Name
  fieldType: text
sharingDefault: ${sharing}
api:
  published: true
features:
  history: true
  search: true
  duplicates: true
  events: true
defaultSearchFields: [${search.join(', ')}]
`,
});

const reference = (childrenName: string): string =>
  `fieldType: reference\nreferenceTo: [${CUSTOMER}]\nonDelete: restrict\nrelationshipName: ${childrenName}`;

const START: Files = {
  ...object(CUSTOMER, ['name']),
  ...object(INVOICE, ['name']),
  ...field('Customer__c', reference('Invoices')),
  ...field('Amount__c', 'fieldType: currency\nprecision: 14\nscale: 2'),
  ...field('Code__c', 'fieldType: text\nlength: 40'),
  ...field('Party__c', 'fieldType: text\nlength: 120'),
  ...field('Notes__c', 'fieldType: text\nlength: 255'),
  ...field('Region__c', 'fieldType: text\nlength: 40'),
};

interface Step {
  readonly name: string;
  readonly files: Files;
  readonly destructive?: readonly [type: string, member: string];
}

const STEPS: readonly Step[] = [
  { name: 'add a field', files: field('Extra__c', 'fieldType: text\nlength: 80') },
  {
    name: 'add a required field with default',
    files: field('Kind__c', 'fieldType: text\nrequired: true\ndefaultValue: plain'),
  },
  {
    name: 'add a validation rule',
    files: file(
      'ValidationRule',
      'validationRules',
      'NotTooGreat',
      'condition: record.Amount__c > 1000000\nmessage: Too much.',
    ),
  },
  { name: 'add a unique field', files: field('Ticket__c', 'fieldType: text\nlength: 40\nunique: true') },
  { name: 'make a field unique', files: field('Code__c', 'fieldType: text\nlength: 40\nunique: true') },
  { name: 'add a reference', files: field('Payer__c', reference('PaidInvoices')) },
  {
    name: 'make a field required, with default',
    files: field('Region__c', 'fieldType: text\nlength: 40\nrequired: true\ndefaultValue: none'),
  },
  { name: 'more digits before the point', files: field('Amount__c', 'fieldType: currency\nprecision: 16\nscale: 2') },
  { name: 'more digits after the point', files: field('Amount__c', 'fieldType: currency\nprecision: 18\nscale: 4') },
  {
    name: 'add a duplicate rule, exact',
    files: file('DuplicateRule', 'duplicateRules', 'SameNotes', 'label: Same notes\nmatch:\n  - field: Notes__c'),
  },
  {
    name: 'private, with a criteria rule',
    files: {
      ...object(INVOICE, ['name'], 'private'),
      'groups/Finance.yaml': 'type: Group\napiName: Finance\nlabel: Finance\n',
      ...file(
        'SharingRule',
        'sharingRules',
        'Great',
        'kind: criteria\ncriteria: record.Amount__c > 5000\nto:\n  group: Finance\naccess: read',
      ),
    },
  },
  { name: 'add a search field', files: object(INVOICE, ['name', 'Notes__c'], 'private') },
  { name: 'delete a field', files: {}, destructive: ['CustomField', `${INVOICE}.Extra__c`] },
  { name: 'add an autoNumber', files: field('Serial__c', 'fieldType: autoNumber\nformat: "S-{0000}"') },
  {
    name: 'add a rollup on the parent',
    files: field(
      'Total__c',
      `fieldType: rollup\nrollup:\n  childObject: ${INVOICE}\n  referenceField: Customer__c\n  function: sum\n  field: Amount__c`,
      CUSTOMER,
    ),
  },
  {
    name: 'add a duplicate rule, fuzzy',
    files: file(
      'DuplicateRule',
      'duplicateRules',
      'SameParty',
      'label: Same party\nthreshold: 0.95\nmatch:\n  - field: Party__c\n    method: fuzzy',
    ),
  },
];

const shown = process.stderr.isTTY;
function progress(text: string): void {
  if (shown) process.stderr.write(`\r\x1b[K${text}`);
}

function packageOf(files: Files): unknown {
  const members = new Map<string, string[]>();
  for (const text of Object.values(files)) {
    const read = (key: string): string | undefined => new RegExp(`^${key}: (.+)$`, 'm').exec(text)?.[1];
    const [type, name, parent] = [read('type'), read('apiName'), read('object')];
    if (type === undefined || name === undefined)
      throw new Error(`A file has no type or apiName: ${text.slice(0, 100)}`);
    members.set(type, [...(members.get(type) ?? []), parent ? `${parent}.${name}` : name]);
  }
  return { version: 1, types: [...members].map(([name, list]) => ({ name, members: list })) };
}

interface Answer {
  readonly status: number;
  readonly etag: string | null;
  readonly text: string;
}

class Client {
  readonly #baseUrl: string;
  readonly #token: string;

  constructor(baseUrl: string, token: string) {
    this.#baseUrl = baseUrl;
    this.#token = token;
  }

  async send(method: string, path: string, body?: unknown, etag?: string): Promise<Answer> {
    const response = await fetch(`${this.#baseUrl}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        'idempotency-key': randomUUID(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, etag: response.headers.get('etag'), text: await response.text() };
  }

  /** Its end: status and how long it took from the request on. */
  async deploy({
    files,
    destructive,
  }: Pick<Step, 'files' | 'destructive'>): Promise<{ outcome: string; tookMs: number }> {
    const began = performance.now();
    const all: Files = destructive
      ? {
          ...files,
          'manifest/destructiveChanges.yaml': `version: 1\ntypes:\n  - name: ${destructive[0]}\n    members:\n      - ${destructive[1]}\n`,
        }
      : files;
    const answer = await this.send('POST', '/metadata/deploy', {
      files: all,
      package: packageOf(files),
      ...(destructive ? { allowDestructiveChanges: true } : {}),
    });
    if (answer.status !== 202) return { outcome: `${answer.status} ${answer.text.slice(0, 300)}`, tookMs: 0 };
    const { deploymentId }: { deploymentId: string } = JSON.parse(answer.text);
    while (performance.now() - began < DEPLOYMENT_MAX_MS) {
      const { status, text } = await this.send('GET', `/metadata/deployments/${deploymentId}`);
      const found = status === 200 ? (JSON.parse(text) as Record<string, unknown>) : {};
      if (['SUCCEEDED', 'FAILED', 'CANCELED'].includes(String(found['status']))) {
        const why = [found['error'], found['blocked']];
        const outcome =
          found['status'] === 'SUCCEEDED' ? 'SUCCEEDED' : `${found['status']} ${JSON.stringify(why).slice(0, 300)}`;
        return { outcome, tookMs: performance.now() - began };
      }
      await pause(50);
    }
    return { outcome: 'did not end', tookMs: performance.now() - began };
  }
}

const quantile = (values: readonly number[], q: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
};

/** Any of these may be current: each record is written a few times. */
const ETAGS = Array.from({ length: 10 }, (_, k) => `"${(k + 1).toString(36)}"`).join(', ');

interface Written {
  readonly writer: number;
  readonly began: number;
  readonly ended: number;
  readonly failure: string | null;
}

/** Writers without a pause: each creates an invoice, then changes one of those that were there. */
class Writers {
  readonly #done: Written[] = [];
  readonly #running: Promise<void>[];
  #stopped = false;

  constructor(client: Client) {
    this.#running = Array.from({ length: WRITERS }, (_, n) => this.#write(client, n));
  }

  async #write(client: Client, writer: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const began = performance.now();
      const row = 1 + Math.floor(Math.random() * ROWS);
      const answer =
        n % 2 === 0
          ? await client
              .send('POST', `/data/${INVOICE}`, {
                name: `New ${randomUUID()}`,
                Customer__c: idOf(1 + (row % PARENTS), 'c'),
                Amount__c: 12.5,
                Code__c: randomUUID(),
                Party__c: `Party ${randomUUID()}`,
                Notes__c: `Written ${randomUUID()}`,
                Region__c: 'north',
              })
              .catch(lost)
          : await client
              .send('PATCH', `/data/${INVOICE}/${idOf(row, 'i')}`, { Notes__c: `Changed ${randomUUID()}` }, ETAGS)
              .catch(lost);
      const failure =
        answer.status < 300 ? null : `${answer.status} ${/"code":"([A-Z_]+)"/.exec(answer.text)?.[1] ?? answer.text}`;
      this.#done.push({ writer, began, ended: performance.now(), failure });
      if (failure !== null) await pause(20);
    }
  }

  /** Events from `from` to `to`. */
  between(
    from: number,
    to: number,
  ): { latencies: number[]; failures: Map<string, number>; stallMs: number; perSecond: number } {
    const inside = this.#done.filter(({ ended }) => ended >= from && ended <= to);
    const failures = new Map<string, number>();
    for (const { failure } of inside) if (failure !== null) failures.set(failure, (failures.get(failure) ?? 0) + 1);
    let stallMs = 0;
    for (let writer = 0; writer < WRITERS; writer++) {
      let last = from;
      for (const one of inside.filter((w) => w.writer === writer)) {
        stallMs = Math.max(stallMs, one.ended - last);
        last = one.ended;
      }
    }
    return {
      latencies: inside.map(({ began, ended }) => ended - began),
      failures,
      stallMs,
      perSecond: (inside.length * 1_000) / (to - from),
    };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }
}

const lost = (error: unknown): Answer => ({ status: 0, etag: null, text: String(error) });

const idOf = (row: number, kind: 'c' | 'i'): string =>
  `0190${kind === 'c' ? 'c' : 'e'}000-0000-7000-8000-${row.toString(16).padStart(12, '0')}`;
const idSql = (row: string, kind: 'c' | 'i'): string =>
  `('0190${kind === 'c' ? 'c' : 'e'}00000007000' || '8000' || lpad(to_hex(${row}), 12, '0'))::uuid`;

async function fill(database: Database, tenantId: string, userId: string): Promise<void> {
  const schema = `"${tenantSchema(tenantId)}"`;
  const system = '"ownerId", "createdAt", "createdById", "updatedAt", "updatedById", "recordVersion"';
  const when = "timestamptz '2022-01-01 00:00:00+00' + (i || ' seconds')::interval";
  const values = `'${userId}', ${when}, '${userId}', ${when}, '${userId}', 1`;
  await database.transaction(async (tx) => {
    await tx.query('SET LOCAL statement_timeout = 0');
    await tx.query(`INSERT INTO ${schema}."${CUSTOMER}" (id, ${system}, name)
      SELECT ${idSql('i', 'c')}, ${values}, 'Customer ' || i FROM generate_series(1, ${PARENTS}) i`);
    await tx.query(`INSERT INTO ${schema}."${INVOICE}"
        (id, ${system}, name, "Customer__c", "Amount__c", "Code__c", "Party__c", "Notes__c", "Region__c")
      SELECT ${idSql('i', 'i')}, ${values}, 'INV-' || lpad(i::text, 8, '0'), ${idSql(`1 + i % ${PARENTS}`, 'c')},
        (i % 1000000)::numeric / 100, 'C-' || i, 'Party ' || md5(i::text) || ' ' || md5((i * 7)::text),
        'Delivery note ' || md5((i * 3)::text) || ' for the order, checked by the back office and filed.',
        CASE WHEN i % 10 > 0 THEN 'north' END
      FROM generate_series(1, ${ROWS}) i`);
  });
  await database.query(`VACUUM (FREEZE, ANALYZE) ${schema}."${INVOICE}"`);
  await database.query(`VACUUM (FREEZE, ANALYZE) ${schema}."${CUSTOMER}"`);
}

interface Measured {
  readonly version: string;
  readonly name: string;
  readonly outcome: string;
  readonly tookMs: number;
  readonly before: ReturnType<Writers['between']>;
  readonly during: ReturnType<Writers['between']>;
}

async function measure(folder: string, version: string): Promise<Measured[]> {
  const work = mkdtempSync(join(tmpdir(), 'bench-deploy-'));
  const embedded = await startEmbeddedDatabase(work);
  const database = new Database(embedded.url, { size: 2, applicationName: 'bench deploy' });
  let platform: ChildProcess | undefined;
  const measured: Measured[] = [];
  try {
    progress(`${version}: creating the tenant`);
    const module = (await import(join(folder, 'bench', 'tenant.ts'))) as {
      createBenchTenant: typeof createBenchTenant;
    };
    const { tenantId, userId } = await module.createBenchTenant(embedded.url);
    const port = await freePort();
    const baseUrl = `http://127.0.0.1:${port}`;
    platform = spawn(process.execPath, [join(folder, 'main.ts')], {
      cwd: folder,
      env: {
        ...process.env,
        DATABASE_URL: embedded.url,
        PORT: String(port),
        BASE_URL: baseUrl,
        SEED_DEMO: 'false',
        LOG_LEVEL: 'warn',
        DATA_DIR: work,
        RATE_CONNECTION_UNITS: '100000000',
        RATE_TENANT_UNITS: '100000000',
        RATE_DAILY_UNITS: '10000000000',
        CONCURRENCY: '10000',
        CONCURRENCY_COSTLY: '10000',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { stdout } = platform;
    await new Promise<void>((ready, failed) => {
      platform?.once('exit', (code) => failed(new Error(`The platform ended with ${code}.`)));
      stdout?.on('data', (chunk: Buffer) => {
        if (chunk.includes('ready ')) ready();
        else process.stderr.write(chunk);
      });
    });
    const client = new Client(baseUrl, await tokenFor(baseUrl));
    const start = await client.deploy({ files: START });
    if (start.outcome !== 'SUCCEEDED') throw new Error(start.outcome);
    progress(`${version}: making ${ROWS} records`);
    await fill(database, tenantId, userId);
    const only = options.only?.split(';');
    const writers = new Writers(client);
    await pause(3_000);
    for (const step of STEPS) {
      if (only && !only.includes(step.name)) continue;
      progress(`${version}: ${step.name}`);
      const quiet = performance.now();
      await pause(Number(options.seconds) * 1_000);
      const began = performance.now();
      const { outcome, tookMs } = await client.deploy(step);
      // Requests that waited for the commit answer after it.
      await pause(1_000);
      const one = {
        version,
        name: step.name,
        outcome,
        tookMs,
        before: writers.between(quiet, began),
        during: writers.between(began, performance.now()),
      };
      measured.push(one);
      progress('');
      console.log(line(one));
    }
    await writers.stop();
  } finally {
    platform?.removeAllListeners('exit');
    if (platform && platform.exitCode === null) {
      platform.kill('SIGTERM');
      await new Promise((gone) => platform?.once('exit', gone));
    }
    await database.close();
    await embedded.stop();
    rmSync(work, { recursive: true, force: true });
  }
  return measured;
}

const HEAD = `| deployment | version | took s | longest stall ms | p50 ms before / during | p99 ms before / during | writes/s before / during | errors |
| --- | --- | --: | --: | --: | --: | --: | --- |`;

function line({ name, version, outcome, tookMs, before, during }: Measured): string {
  const ms = (value: number): string => value.toFixed(0);
  const pair = (q: number): string => `${ms(quantile(before.latencies, q))} / ${ms(quantile(during.latencies, q))}`;
  const errors = [...during.failures].map(([what, count]) => `${count} × ${what}`).join(', ') || '0';
  const took = outcome === 'SUCCEEDED' ? (tookMs / 1_000).toFixed(1) : `${(tookMs / 1_000).toFixed(1)} ${outcome}`;
  return `| ${name} | ${version} | ${took} | ${ms(during.stallMs)} | ${pair(0.5)} | ${pair(0.99)} | ${ms(before.perSecond)} / ${ms(during.perSecond)} | ${errors} |`;
}

console.log(
  `${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.version}; ` +
    `${ROWS.toLocaleString('en')} invoices of ${PARENTS.toLocaleString('en')} customers, ${WRITERS} writers.\n`,
);
console.log(HEAD);
const versions: [folder: string, name: string][] = [[root, 'this']];
if (options.beside) versions.unshift([resolve(options.beside), 'beside']);
const all: Measured[] = [];
for (const [folder, name] of versions) all.push(...(await measure(folder, name)));
if (options.out)
  writeFileSync(
    options.out,
    [HEAD, ...STEPS.flatMap(({ name }) => all.filter((one) => one.name === name).map(line))].join('\n'),
  );
