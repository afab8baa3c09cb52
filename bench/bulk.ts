/**
 * Bulk jobs: `node bench/bulk.ts [--rows 100000] [--accounts 10000] [--out <file>]`. Every service is a process of its own over
 * NATS. One job creates `rows` products, one exports them, one creates `accounts`, which two duplicate rules compare; beside
 * them a person creates contacts. COPY of the rows as they were stored is the limit. Processor times say what a row costs whatever
 * else the machine does; they include the person.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ALL_SERVICES, type ServiceName } from '../config/services.ts';
import { freePort, startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { digestOf } from '../test/service/gateway/streamed-service.ts';
import { type Api, api, tokenFor } from '../test/support/client.ts';
import { startNats } from '../test/support/nats.ts';
import { removeLogs, type ServiceProcess, startProcess } from '../test/support/processes.ts';

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    accounts: { type: 'string', default: '10000' },
    out: { type: 'string' },
  },
});
const ROWS = Number(options.rows);
const ACCOUNTS = Number(options.accounts);
const ROWS_OF_PART = 100_000;
/** A person creates a record so often. */
const EVERY_MS = 50;
const ALONE_SECONDS = 15;

const folder = mkdtempSync(join(tmpdir(), 'bench-bulk-'));
// The server of the database reads and writes files in it.
const exchange = join(folder, 'exchange');
mkdirSync(exchange);
chmodSync(folder, 0o755);
chmodSync(exchange, 0o777);
const [nats, database, port, healthPort] = await Promise.all([
  startNats(),
  startEmbeddedDatabase(join(folder, 'database'), { settings: ['shared_buffers=512MB'] }),
  freePort(),
  freePort(),
]);
const client = new pg.Client({ connectionString: database.url });
await client.connect();
const processes = new Map<ServiceName, ServiceProcess>();
const lines: string[] = [];
async function measure(): Promise<void> {
  await Promise.all(
    ALL_SERVICES.map(async (service) => {
      const ports = { gateway: { PORT: String(port) }, bulk: { HEALTH_PORT: String(healthPort) } };
      const env = { DATA_DIR: folder, ...(service === 'gateway' || service === 'bulk' ? ports[service] : {}) };
      const natsUrl = nats.url;
      processes.set(
        service,
        await startProcess({ services: [service], databaseUrl: database.url, natsUrl, patience: 300_000, env }),
      );
    }),
  );
  const baseUrl = `http://127.0.0.1:${port}`;
  const ada = api(baseUrl, await tokenFor(baseUrl, 'ada'));
  const schema = `t_${(await ada.get('/identity')).body.tenant.id.replaceAll('-', '')}`;
  const account = (await ada.get('/data/Account?take=1&fields=id')).body.records[0].id;
  const person = (): Person => new Person(ada, account);

  const alone = person();
  await pause(ALONE_SECONDS * 1_000);
  note('A person alone', { writes: await alone.end() });

  const products = await beside(person(), () =>
    importRows(ada, 'Product', ROWS, ['sku', 'name', 'listPrice', 'weight', 'active', 'launchedOn'], (n) => [
      `BULK-${String(n).padStart(8, '0')}`,
      `Product ${n.toString(36)}`,
      `${n % 1_000}.50`,
      `${n % 90}.125`,
      n % 3 === 0 ? 'false' : 'true',
      `20${String(10 + (n % 15))}-0${1 + (n % 9)}-1${n % 9}`,
    ]),
  );
  note(`Import of ${ROWS} products`, products);
  note(`COPY of ${ROWS} products into a table with the same indexes`, await copied(schema, 'Product', 'into'));

  note(`Export of ${ROWS} products`, await beside(person(), () => exportRows(ada, 'Product')));
  note(`COPY of ${ROWS} products to a file`, await copied(schema, 'Product', 'out'));

  const accounts = await beside(person(), () =>
    importRows(ada, 'Account', ACCOUNTS, ['accountNumber', 'name', 'city', 'TaxId__c'], (n) => [
      `BU-${10_000 + n}`,
      company(n),
      CITIES[n % CITIES.length] ?? '',
      `XX${n}`,
    ]),
  );
  note(`Import of ${ACCOUNTS} accounts under two duplicate rules`, accounts);
  print();
}

interface Figures {
  readonly rows?: number;
  readonly seconds?: number;
  /** Seconds of the processes that are watched, and of the database. */
  readonly processor?: readonly number[];
  readonly peaksMiB?: readonly number[];
  /** In which the job gave way. */
  readonly pausedSeconds?: number;
  /** Milliseconds of the writes of a person meanwhile. */
  readonly writes?: readonly number[];
}

const CITIES = ['Kiel', 'Hamburg', 'Bremen', 'Emden', 'Lübeck', 'Rostock', 'Wismar'];
const SYLLABLES = [
  'ka',
  'ro',
  'mi',
  'ten',
  'sol',
  'bar',
  'lin',
  'dor',
  'wes',
  'gun',
  'hal',
  'pet',
  'zi',
  'mo',
  'fra',
  'jul',
];

/** Names that are not alike: syllables by the digits of a number that is far from those of its neighbors. */
function company(n: number): string {
  let rest = (n * 2_654_435_761) % 2 ** 32;
  let name = '';
  for (let i = 0; i < 6; i++) {
    name += SYLLABLES[rest % 16];
    if (i === 2) name += ' ';
    rest = Math.floor(rest / 16);
  }
  return `${name} GmbH`;
}

/** Creates contacts at a steady pace. */
class Person {
  readonly #times: number[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  constructor(who: Api, account: string) {
    let n = 0;
    this.#timer = setInterval(() => {
      const begun = performance.now();
      const body = { name: `Person ${n}`, lastName: `Person ${n++}`, accountId: account };
      const work = who.post('/data/Contact', body).then(({ status, text }) => {
        if (status !== 201) console.warn(`A write was answered with ${status}: ${text}`);
        this.#times.push(performance.now() - begun);
        this.#open.delete(work);
      });
      this.#open.add(work);
    }, EVERY_MS);
  }

  async end(): Promise<readonly number[]> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
    return this.#times;
  }
}

/** Processes whose memory and processor time are measured. */
const WATCHED = ['bulk', 'data', 'gateway'] as const;

/** The figures of the work, with the writes of a person, and the memory and processor time of processes meanwhile. */
async function beside(person: Person, work: () => Promise<Figures>): Promise<Figures> {
  const pids = WATCHED.map((service) => processes.get(service)?.pid ?? 0);
  for (const pid of pids) writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const paused = await pausedSeconds();
  const before = [...pids.map(processorSeconds), databaseSeconds()];
  // A failure is to be seen, and not what the writes of the person make of the end.
  const figures = await work().catch(async (error: unknown) => {
    await person.end();
    throw error;
  });
  const after = [...pids.map(processorSeconds), databaseSeconds()];
  return {
    ...figures,
    processor: after.map((seconds, index) => seconds - (before[index] ?? 0)),
    peaksMiB: pids.map(peakMiB),
    pausedSeconds: (await pausedSeconds()) - paused,
    writes: await person.end(),
  };
}

/** The most memory that a process had since its record was cleared. */
const peakMiB = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

/** The columns of /proc/<pid>/stat behind the name, which may contain anything. */
function statOf(pid: number | string): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

const TICKS_PER_SECOND = 100;
const PARENT = 1;
const USER_TIME = 11;

const ticksOf = (stat: readonly string[], count: number): number =>
  stat.slice(USER_TIME, USER_TIME + count).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;

/** Processor time of a process, user and system. */
const processorSeconds = (pid: number): number => ticksOf(statOf(pid), 2);

/** Processor time of the database: of its first process, of those that have ended, and of those that live. */
function databaseSeconds(): number {
  let seconds = ticksOf(statOf(database.pid), 4);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = statOf(pid);
      if (Number(stat[PARENT]) === database.pid) seconds += ticksOf(stat, 2);
    } catch {} // it has ended meanwhile
  }
  return seconds;
}

async function pausedSeconds(): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text();
  return Number(/^erp_bulk_paused_seconds_total (\S+)/m.exec(metrics)?.[1] ?? 0);
}

async function importRows(
  who: Api,
  objectApiName: string,
  count: number,
  header: readonly string[],
  row: (n: number) => readonly string[],
): Promise<Figures> {
  const { jobId } = await sent(who, '/bulk/jobs', { operation: 'create', objectApiName, format: 'csv' });
  for (let from = 0; from < count; from += ROWS_OF_PART) {
    const rows = Array.from({ length: Math.min(ROWS_OF_PART, count - from) }, (_, i) => row(from + i).join());
    const content = Buffer.from(`${header.join()}\n${rows.join('\n')}\n`);
    const at = `/bulk/jobs/${jobId}/parts/${from / ROWS_OF_PART + 1}`;
    const reply = await who.send('PUT', at, content, { headers: { 'content-type': 'text/csv', ...digestOf(content) } });
    if (reply.status !== 201) throw new Error(reply.text);
  }
  await sent(who, `/bulk/jobs/${jobId}/start`);
  return ended(who, jobId, count);
}

async function exportRows(who: Api, objectApiName: string): Promise<Figures> {
  const { jobId } = await sent(who, '/bulk/jobs', { operation: 'export', objectApiName, format: 'csv' });
  return ended(who, jobId);
}

async function sent(who: Api, path: string, body?: object): Promise<{ jobId: string }> {
  const reply = await who.post(path, body);
  if (reply.status >= 300) throw new Error(reply.text);
  return reply.body;
}

async function ended(who: Api, jobId: string, expected?: number): Promise<Figures> {
  for (;;) {
    const { body: job } = await who.get(`/bulk/jobs/${jobId}`);
    if (job.finishedAt === null) {
      await pause(500);
      continue;
    }
    const { processed, failed } = job.counts;
    // Of many names that are made up, a few are alike.
    const isComplete = processed === (expected ?? processed) && failed <= processed / 1_000;
    if (job.state !== 'COMPLETED' || !isComplete) throw new Error(JSON.stringify(job));
    return { rows: processed, seconds: (Date.parse(job.finishedAt) - Date.parse(job.startedAt)) / 1_000 };
  }
}

/** The rows of a table out to a file of the server, or from there into a table that is the same. */
async function copied(schema: string, table: string, way: 'into' | 'out'): Promise<Figures> {
  const [from, file] = [`${schema}."${table}"`, `'${join(exchange, table)}'`];
  const timed = async (text: string): Promise<Figures> => {
    const begun = performance.now();
    const before = databaseSeconds();
    const { rowCount } = await client.query(text);
    const seconds = (performance.now() - begun) / 1_000;
    return { rows: rowCount ?? 0, seconds, processor: [databaseSeconds() - before] };
  };
  const out = await timed(`COPY ${from} TO ${file}`);
  if (way === 'out') return out;
  await client.query(`CREATE TABLE public.copied (LIKE ${from} INCLUDING ALL)`);
  const into = await timed(`COPY public.copied FROM ${file}`);
  await client.query('DROP TABLE public.copied');
  return into;
}

function note(what: string, figures: Figures): void {
  const { rows, seconds, pausedSeconds: paused, processor, peaksMiB, writes = [] } = figures;
  const sorted = [...writes].sort((a, b) => a - b);
  const at = (share: number): string => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(1) ?? '';
  const rate = rows !== undefined && seconds !== undefined ? Math.round(rows / seconds).toLocaleString('en') : '';
  const cells = [
    what,
    seconds?.toFixed(1) ?? '',
    paused?.toFixed(1) ?? '',
    rate,
    processor && rows !== undefined ? processor.map((spent) => ((spent / rows) * 1e6).toFixed(0)).join(' / ') : '',
    peaksMiB?.map((mib) => mib.toFixed(0)).join(' / ') ?? '',
    at(0.5),
    at(0.99),
    writes.length || '',
  ];
  lines.push(`| ${cells.join(' | ')} |`);
  console.info(lines.at(-1));
}

function print(): void {
  const text = [
    '# Bulk jobs',
    '',
    `\`node bench/bulk.ts --rows ${ROWS} --accounts ${ACCOUNTS}\`: one job at a time, every service a process of its own over NATS.`,
    `Beside each, a person creates a contact every ${EVERY_MS} ms, whose latency stands on the right.`,
    '',
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.version}.`,
    '',
    `Processor time is that of ${WATCHED.join(', ')} and PostgreSQL, memory the peak of ${WATCHED.join(', ')}.`,
    '',
    '| what | seconds | of them gave way | rows/s | processor, µs per row | memory, MiB | p50 ms | p99 ms | writes |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...lines,
    '',
  ].join('\n');
  if (options.out) writeFileSync(options.out, text);
  else console.info(text);
}

try {
  await measure();
} finally {
  await Promise.all([...processes.values()].map((process) => process.stop()));
  await client.end();
  await nats.stop();
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
  removeLogs();
}
