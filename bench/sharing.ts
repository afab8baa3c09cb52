/**
 * Cost of sharing in lists: `node bench/sharing.ts [--work <folder>] [--rounds 200] [--out <file>] [--plans <file>]`. One tenant with
 * 200,000 private invoices, 1,000 users in a role tree of five levels and 20 sharing rules. A representative, a manager
 * in the middle and the top ask for the same lists as a user with view all, in turn, over HTTP; the database's own time
 * for the same statements stands beside it. `--work` keeps the data for the next run, `--plans` writes EXPLAIN of both.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ServiceBroker } from 'moleculer';
import { readConfig } from '../config/env.ts';
import { call } from '../contracts/call.ts';
import { accessFor } from '../lib/access/rules.ts';
import type { Access } from '../lib/access/types.ts';
import { tenantSchema } from '../lib/context.ts';
import { constrain } from '../lib/query/constrain.ts';
import { parseListQuery } from '../lib/query/parse.ts';
import { planList } from '../lib/query/plan.ts';
import { compileList } from '../lib/query/sql.ts';
import type { Snapshot } from '../lib/schema/snapshot.ts';
import { required } from '../lib/values/required.ts';
import { start } from '../main.ts';
import { Database } from '../mixins/database/database.ts';
import { startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { signIn } from '../scripts/sign-in.ts';
import { INVOICES, loadPlain, loadTenant, METADATA, rowId } from './dataset.ts';
import { cpuSeconds, ensureWrk, type LoadResult, runLoad } from './load.ts';

const { values: options } = parseArgs({
  options: {
    work: { type: 'string' },
    rounds: { type: 'string', default: '200' },
    out: { type: 'string' },
    plans: { type: 'string' },
  },
});
const ROUNDS = Number(options.rounds);
const LOAD_SECONDS = 3;
const LOAD_ROUNDS = 5;
const PASSWORD = 'bench-password';
const OBJECT = 'BenchInvoice__c';
/** Roles of each level of the tree, from the top, and users of each of them. */
const LEVELS = [
  { roles: 1, users: 1 },
  { roles: 4, users: 1 },
  { roles: 16, users: 2 },
  { roles: 48, users: 3 },
  { roles: 144, users: 819 / 144 },
];
const ASKERS = {
  'view all': 'auditor@bench.example',
  representative: 'user4.7@bench.example',
  'middle manager': 'user2.5@bench.example',
  top: 'user0.0@bench.example',
} as const;
type Asker = keyof typeof ASKERS;
const USERNAMES: ReadonlySet<string> = new Set(Object.values(ASKERS));

const lists: Readonly<Record<string, Record<string, unknown>>> = {
  'newest first': {},
  'one status': { where: { Status__c: 'disputed' } },
  'one account': { where: { Account__c: rowId(20) } },
  'newest with total': { includeTotal: true },
};

const yaml = (lines: readonly string[]): string => `${lines.join('\n')}\n`;

function project(): Record<string, string> {
  const files = { ...METADATA };
  const object = `objects/${OBJECT}/object.yaml`;
  files[object] = files[object]!.replace('sharingDefault: readWrite', 'sharingDefault: private');
  for (const [level, { roles }] of LEVELS.entries())
    for (let n = 0; n < roles; n++) {
      const parent = level === 0 ? [] : [`parent: L${level - 1}R${n % LEVELS[level - 1]!.roles}`];
      const apiName = `L${level}R${n}`;
      files[`roles/${apiName}.yaml`] = yaml(['type: Role', `apiName: ${apiName}`, `label: ${apiName}`, ...parent]);
    }
  files['groups/Finance.yaml'] = yaml([
    'type: Group',
    'apiName: Finance',
    'label: Finance',
    'members:',
    '  roles:',
    '    - L4R7',
    '    - L4R9',
  ]);
  const rule = (n: number, kind: readonly string[], to: string): void => {
    const apiName = `Rule${n}`;
    files[`objects/${OBJECT}/sharingRules/${apiName}.yaml`] = yaml([
      'type: SharingRule',
      `apiName: ${apiName}`,
      `object: ${OBJECT}`,
      ...kind,
      'to:',
      `  ${to}`,
      `access: ${n % 3 ? 'read' : 'readWrite'}`,
    ]);
  };
  const owner = (role: string): string[] => ['kind: owner', 'from:', `  role: ${role}`];
  const criteria = (text: string): string[] => ['kind: criteria', `criteria: ${text}`];
  // Five of the twenty reach the representative who asks, and with them those above.
  rule(1, owner('L4R8'), 'role: L4R7');
  rule(2, owner('L4R20'), 'group: Finance');
  rule(3, owner('L3R9'), 'group: Finance');
  rule(4, criteria('record.Status__c == "disputed" && record.Region__c == "north"'), 'role: L4R7');
  rule(5, criteria('record.Amount__c > 10050'), 'group: Finance');
  for (let n = 6; n <= 14; n++) rule(n, owner(`L4R${n * 7}`), `role: L4R${n * 5}`);
  for (let n = 15; n <= 20; n++)
    rule(n, criteria(`record.Region__c == "south" && record.Amount__c > ${n * 500}`), `role: L4R${n * 3}`);
  const profile = (apiName: string, viewAll: boolean): string =>
    yaml([
      'type: Profile',
      `apiName: ${apiName}`,
      `label: ${apiName}`,
      'system:',
      '  - apiEnabled',
      'objects:',
      `  ${OBJECT}:`,
      ...['create', 'read', 'update', 'delete'].map((name) => `    ${name}: true`),
      `    viewAll: ${viewAll}`,
      '    modifyAll: false',
      '  BenchAccount__c:',
      ...['create', 'read', 'update', 'delete'].map((name) => `    ${name}: true`),
      '    viewAll: false',
      '    modifyAll: false',
      'fields:',
      ...Object.keys(METADATA).flatMap((path) => {
        const field = /^objects\/(.+)\/fields\/(.+)\.yaml$/.exec(path);
        return field ? [`  ${field[1]}.${field[2]}:`, '    read: true', '    edit: true'] : [];
      }),
    ]);
  files['profiles/Sales.yaml'] = profile('Sales', false);
  files['profiles/Auditor.yaml'] = profile('Auditor', true);
  return files;
}

async function setUp(broker: ServiceBroker, database: Database): Promise<string> {
  const { tenantId } = await call(broker, 'metadata.tenants.create', {
    template: 'empty',
    key: 'bench',
    name: 'Bench',
  });
  await call(broker, 'auth.domains.add', { tenantId, domain: 'bench.example' });
  await call(broker, 'metadata.templates.deploy', { tenantId, files: project() }, { timeout: 120_000 });
  const person = (username: string, profileApiName: string, roleApiName: string | null) => ({
    username,
    email: username,
    displayName: username,
    profileApiName,
    roleApiName,
    ...(USERNAMES.has(username) ? { password: PASSWORD } : {}),
  });
  const users = [person(ASKERS['view all'], 'Auditor', null)];
  for (const [level, { roles, users: each }] of LEVELS.entries())
    for (let n = 0; n < Math.round(roles * each); n++)
      users.push(person(`user${level}.${n}@bench.example`, 'Sales', `L${level}R${n % roles}`));
  const { userIds } = await call(broker, 'data.users.provision', { tenantId, users }, { timeout: 120_000 });
  await loadPlain(database);
  const schema = `"${tenantSchema(tenantId)}"`;
  await loadTenant(database, schema, userIds[ASKERS['view all']]!);
  // Only the indexes that the platform makes.
  for (const column of ['Status__c', 'Amount__c', 'IssueDate__c'])
    await database.query(`DROP INDEX ${schema}."${OBJECT}_${column}_idx"`);
  // Nine in ten invoices belong to representatives; the owners of neighbours in time are far apart.
  const owners = users.slice(1).map((user) => `'${userIds[user.username]}'`);
  await database.transaction(async (tx) => {
    await tx.query('SET LOCAL statement_timeout = 0');
    await tx.query(
      `UPDATE ${schema}."${OBJECT}" t SET "ownerId" = (ARRAY[${owners.join(',')}])[1 + h.n]::uuid FROM (
         SELECT id, CASE WHEN bench.h(i, 51) % 10 = 0 THEN bench.h(i, 52) % ${owners.length}
           ELSE ${owners.length - 819} + bench.h(i, 53) % 819 END AS n
         FROM (SELECT id, row_number() OVER (ORDER BY id) AS i FROM ${schema}."${OBJECT}") x) h WHERE h.id = t.id`,
    );
  });
  await database.query(`VACUUM (FULL) ${schema}."${OBJECT}"`);
  await database.query('VACUUM (FREEZE, ANALYZE)');
  return tenantId;
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const work = options.work ?? mkdtempSync(join(tmpdir(), 'sharing-'));
const embedded = await startEmbeddedDatabase(work);
const running = await start(
  readConfig({
    DATABASE_URL: embedded.url,
    PORT: '0',
    LOG_LEVEL: 'warn',
    SEED_DEMO: 'false',
    DATA_DIR: work,
    RATE_CONNECTION_UNITS: '100000000',
    RATE_TENANT_UNITS: '100000000',
    RATE_ANONYMOUS_REQUESTS: '100000000',
    RATE_DAILY_UNITS: '10000000000',
  }),
);
const database = new Database(embedded.url, { size: 2, applicationName: 'bench sharing' });
try {
  const made = join(work, 'tenant');
  if (!existsSync(made)) writeFileSync(made, await setUp(running.broker, database));
  const tenantId = readFileSync(made, 'utf8');
  const baseUrl = running.baseUrl!;
  const snapshot = await snapshotOf(tenantId);
  const people = await peopleOf(tenantId);
  const askers = Object.keys(ASKERS) as Asker[];
  const tokens = new Map<Asker, string>();
  for (const asker of askers) {
    const { access_token } = await signIn({ baseUrl, user: ASKERS[asker], password: PASSWORD, scope: undefined });
    tokens.set(asker, access_token);
  }
  const accesses = new Map<Asker, Access>();
  for (const asker of askers) {
    const user = people.find((person) => person.username === ASKERS[asker])!;
    const principal = {
      ...user,
      displayName: '',
      active: true,
      locale: null,
      timezone: 'UTC',
      permissionSetApiNames: [],
    };
    accesses.set(asker, accessFor(snapshot, principal, { users: people }));
  }
  const lines: string[] = [];
  const plans: string[] = [];
  for (const [name, query] of Object.entries(lists)) {
    const http = new Map<Asker, number[]>(askers.map((asker) => [asker, []]));
    const inside = new Map<Asker, number[]>(askers.map((asker) => [asker, []]));
    let seen: Record<string, number> = {};
    for (let round = -10; round < ROUNDS; round++)
      for (const asker of askers) {
        const took = await overHttp(baseUrl, required(tokens, asker), query);
        const own = await inDatabase(required(accesses, asker), query, tenantId);
        if (round < 0) {
          seen = { ...seen, [asker]: took.records };
          continue;
        }
        required(http, asker).push(took.ms);
        required(inside, asker).push(own);
      }
    for (const asker of askers) {
      const cell = (times: Map<Asker, number[]>): string => {
        const own = median(required(times, asker));
        return `${own.toFixed(2)} | ${(own / median(required(times, 'view all'))).toFixed(2)}`;
      };
      lines.push(`| ${name} | ${asker} | ${seen[asker]} | ${cell(http)} | ${cell(inside)} |`);
      console.log(lines.at(-1));
      if (options.plans && name === 'newest first')
        plans.push(
          `## ${name}, ${asker}\n\n\`\`\`\n${await explain(required(accesses, asker), query, tenantId)}\n\`\`\`\n`,
        );
    }
  }
  const load: string[] = [];
  ensureWrk();
  for (const connections of [1, 32]) {
    const runs = new Map<Asker, LoadRun[]>(askers.map((asker) => [asker, []]));
    for (let round = 0; round < LOAD_ROUNDS; round++)
      for (const asker of askers)
        required(runs, asker).push(await underLoad(baseUrl, required(tokens, asker), connections));
    for (const asker of askers) {
      const cell = (value: (run: LoadRun) => number, digits: number, turned = false): string => {
        const own = median(required(runs, asker).map(value));
        const all = median(required(runs, 'view all').map(value));
        return `${own.toFixed(digits)} | ${(turned ? all / own : own / all).toFixed(2)}`;
      };
      const [server, inDatabase] = [
        median(required(runs, asker).map((run) => run.serverMs)),
        median(required(runs, asker).map((run) => run.databaseMs)),
      ];
      load.push(
        `| ${connections} | ${asker} | ${cell((run) => run.rps, 0, true)} | ${cell((run) => run.p50, 2)} | ${server.toFixed(3)} | ${inDatabase.toFixed(3)} | ${cell((run) => run.serverMs + run.databaseMs, 3).split(' | ')[1]} |`,
      );
      console.log(load.at(-1));
    }
  }
  const report = [
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.version}; ${INVOICES} invoices, ${people.length} users, 20 sharing rules; medians of ${ROUNDS} lists of 50, asked in turn.`,
    '',
    '| list | who | records | HTTP ms | ratio | database ms | ratio |',
    '|---|---|--:|--:|--:|--:|--:|',
    ...lines,
    '',
    `Newest first under load from another process (wrk), ${LOAD_SECONDS} seconds for each user in turn, medians of ${LOAD_ROUNDS} turns; the`,
    'ratio says how many times as much it costs as for view all. CPU is that of the server and of the database for one',
    'request, which other work on the machine disturbs least.',
    '',
    '| connections | who | requests/s | ratio | p50 ms | ratio | server CPU ms | database CPU ms | ratio of the sum |',
    '|--:|---|--:|--:|--:|--:|--:|--:|--:|',
    ...load,
    '',
  ].join('\n');
  if (options.out) writeFileSync(options.out, report);
  if (options.plans) writeFileSync(options.plans, plans.join('\n'));
} finally {
  await database.close();
  await running.stop();
  await embedded.stop();
  if (!options.work) rmSync(work, { recursive: true, force: true });
}

interface LoadRun extends LoadResult {
  readonly serverMs: number;
  readonly databaseMs: number;
}

/** The server is this process, which does nothing else meanwhile. */
async function underLoad(baseUrl: string, token: string, connections: number): Promise<LoadRun> {
  const requests = [{ path: `/api/v1/data/${OBJECT}?take=50`, headers: { authorization: `Bearer ${token}` } }];
  await runLoad(baseUrl, requests, connections, 1);
  const [server, inDatabase] = [process.cpuUsage(), cpuSeconds([embedded.pid])];
  const result = await runLoad(baseUrl, requests, connections, LOAD_SECONDS);
  const { user, system } = process.cpuUsage(server);
  const serverMs = (user + system) / 1000 / result.requests;
  const databaseMs = ((cpuSeconds([embedded.pid]) - inDatabase) * 1000) / result.requests;
  return { ...result, serverMs, databaseMs };
}

async function snapshotOf(tenantId: string): Promise<Snapshot> {
  const found = await call(running.broker, 'metadata.snapshots.get', { tenantId });
  return JSON.parse(Buffer.from(found!.snapshot).toString());
}

async function peopleOf(tenantId: string) {
  const { rows } = await database.query<{
    userId: string;
    username: string;
    roleApiName: string | null;
    profileApiName: string;
  }>(`SELECT id AS "userId", username, "roleApiName", "profileApiName" FROM "${tenantSchema(tenantId)}"."User"`);
  return rows;
}

async function overHttp(
  baseUrl: string,
  token: string,
  query: Record<string, unknown>,
): Promise<{ ms: number; records: number }> {
  const url = new URL(`${baseUrl}/api/v1/data/${OBJECT}`);
  url.searchParams.set('take', '50');
  for (const [key, value] of Object.entries(query))
    url.searchParams.set(key, typeof value === 'object' ? JSON.stringify(value) : String(value));
  const started = performance.now();
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  const ms = performance.now() - started;
  const page: { records?: unknown[] } = JSON.parse(text);
  if (!page.records) throw new Error(`${response.status} ${text.slice(0, 300)}`);
  return { ms, records: page.records.length };
}

function statementOf(access: Access, query: Record<string, unknown>, tenantId: string) {
  const request = parseListQuery({ ...query, take: 50 }, 'body');
  const view = { access, snapshot: access.snapshot, now: Date.now(), timezone: 'UTC' };
  const plan = planList(request, access.objects[OBJECT]!.object, view);
  return compileList(constrain(plan, access), tenantSchema(tenantId));
}

/** Milliseconds of the prepared statement on a connection of its own, as a session runs it again and again. */
async function inDatabase(access: Access, query: Record<string, unknown>, tenantId: string): Promise<number> {
  const compiled = statementOf(access, query, tenantId);
  return database.transaction(async (tx) => {
    const started = performance.now();
    await tx.page(compiled, '[');
    return performance.now() - started;
  });
}

async function explain(access: Access, query: Record<string, unknown>, tenantId: string): Promise<string> {
  const { text, values } = statementOf(access, query, tenantId);
  const { rows } = await database.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, BUFFERS) ${text}`, [...values]);
  return rows
    .map((row) => row['QUERY PLAN'].replace(/\{[0-9a-f,-]{300,}\}/g, (list) => `{… ${list.split(',').length} ids …}`))
    .join('\n');
}
