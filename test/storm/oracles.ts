/**
 * Invariants after a storm: the stored state matches the ledger, the parts of the platform agree
 * with each other, and nothing is left over.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client as Connection } from 'pg';
import { OPERATOR } from '../../config/services.ts';
import { findNothingWrong } from '../support/consistency.ts';
import type { Client, Traffic } from './client.ts';
import { filesAsInLedger } from './contents.ts';
import type { Kept, Ledger } from './ledger.ts';
import type { Load } from './load.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
/** Intentions that are sent once more. */
const AGAIN_MAX = 400;
const SEALED_WITHIN_MS = 120_000;
const MIB = 1024 * 1024;

/** How much was checked, for the report. */
export type Checked = Map<string, number>;

export async function checkEverything(traffic: Traffic, ledger: Ledger, load: Load): Promise<Checked> {
  const checked: Checked = new Map();
  const { violations } = traffic;
  const steps: readonly (readonly [string, () => Promise<number>])[] = [
    ['mutations resolved by their keys', () => ledger.resolve()],
    ['mutations sent once more', () => ledger.sendAgain(AGAIN_MAX)],
    ['records compared with the ledger', () => recordsAsInLedger(traffic, ledger, load)],
    ['counters', () => countersAsInLedger(traffic, ledger, load)],
    ['totals of orders', () => totalsAsInLedger(traffic, ledger, load)],
    ['files with their contents', () => filesAsInLedger(traffic, ledger, load.people.mia)],
    ['records in copies', () => copiesAsLists(traffic, load)],
    ['events of accounts', () => load.listeners.compare(load.tenantId)],
    ['deals in a widget', () => widgetAsList(traffic, load)],
    ['deployments', () => deploymentsAsInLedger(traffic, ledger, load)],
    ['rows asked for in the database', () => databaseAgrees(traffic, ledger, load)],
    ['audit trails', () => trailsAreIntact(traffic)],
    ['sessions', () => nothingIsHeld(traffic)],
    ['lines of logs', () => logsAreClean(traffic)],
    ['processes within their memory', () => memoryIsBounded(traffic)],
  ];
  for (const [name, step] of steps)
    try {
      checked.set(name, await step());
    } catch (error) {
      violations.add({ oracle: name, what: 'the check failed', server: (error as Error).stack ?? String(error) });
    }
  return checked;
}

/** All records of an object that this storm made, as a user who sees all of them reads them. */
async function stored(client: Client, object: string, marker: string): Promise<Map<string, Record<string, unknown>>> {
  const found = new Map<string, Record<string, unknown>>();
  const filters = { logic: 'and', conditions: [{ id: '1', field: 'name', operator: 'starts_with', value: marker }] };
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ filters: JSON.stringify(filters), take: '200' });
    if (cursor) query.set('cursor', cursor);
    const { status, body, text } = await client.get(`/data/${object}?${query}`);
    if (status !== 200) throw new Error(`List of ${object}: ${status} ${text}`);
    for (const record of body.records) found.set(record.id, record);
    cursor = body.nextCursor;
  }
  return found;
}

/** Nothing lost, nothing done twice: exactly the records of the ledger, with its values and versions. */
async function recordsAsInLedger({ violations }: Traffic, ledger: Ledger, load: Load): Promise<number> {
  const { ada } = load.people;
  const kept = [...ledger.records.values()];
  const groups: readonly (readonly [Client, string, string])[] = [
    [ada, 'Account', load.marker],
    [load.eve, 'Account', load.foreignMarker],
    [ada, 'Opportunity__c', load.marker],
    [ada, 'PriceList__c', load.marker],
  ];
  for (const [client, object, marker] of groups) {
    const there = await stored(client, object, marker);
    const mine = kept.filter((one) => one.object === object && one.tenant === client.tenant);
    for (const one of mine) {
      compare(one, there.get(one.id));
      there.delete(one.id);
    }
    for (const id of ledger.counters.keys()) there.delete(id);
    for (const [id, record] of there)
      violations.add({ oracle: 'exactly once', what: `${object} ${id} is there and nobody made it`, server: record });
  }
  // Orders have no name that begins with the marker.
  for (const one of kept.filter(({ object }) => object === 'SalesOrder__c'))
    compare(one, (await ada.get(`/data/SalesOrder__c/${one.id}`)).body);
  return kept.length;

  function compare(one: Kept, record: Record<string, unknown> | undefined): void {
    const what = `${one.object} ${one.id}`;
    if (!one.live || !record) {
      if (one.live !== Boolean(record))
        violations.add({
          oracle: 'exactly once',
          what: `${what} is ${one.live ? 'lost' : 'not deleted'}`,
          ledger: one,
          server: record,
        });
      return;
    }
    const told = Object.fromEntries(Object.keys(one.fields).map((name) => [name, record[name]]));
    violations.equal('exactly once', `values of ${what}`, told, one.fields);
    violations.equal('versions', what, record['recordVersion'], one.version);
  }
}

async function countersAsInLedger({ violations }: Traffic, ledger: Ledger, load: Load): Promise<number> {
  for (const [id, raised] of ledger.counters) {
    const { body } = await load.people.ada.get(`/data/Account/${id}`);
    violations.equal('exactly once', `the counter ${id}`, body.employees, raised);
    violations.equal('versions', `the counter ${id}`, body.recordVersion, raised + 1);
  }
  return ledger.counters.size;
}

async function totalsAsInLedger({ violations }: Traffic, ledger: Ledger, load: Load): Promise<number> {
  for (const [id, lines] of ledger.lines) {
    const { body } = await load.people.ada.get(`/data/SalesOrder__c/${id}`);
    const sum = [...lines.values()].reduce((total, amount) => total + amount, 0);
    violations.equal('totals', `lines of the order ${id}`, body.LineCount__c, lines.size);
    violations.equal('totals', `net amount of the order ${id}`, Number(body.NetAmount__c), sum);
  }
  return ledger.lines.size;
}

async function copiesAsLists({ violations }: Traffic, { followers }: Load): Promise<number> {
  let compared = 0;
  for (const follower of followers) {
    await follower.follow();
    const listed = await follower.list();
    compared += listed.size;
    for (const id of new Set([...listed.keys(), ...follower.copy.keys()]))
      if (listed.get(id) !== follower.copy.get(id))
        violations.add({
          oracle: 'a copy equals the list',
          what: `${follower.object} ${id} of ${follower.client.username}`,
          ledger: `the copy has ${follower.copy.get(id) ?? 'nothing'}`,
          server: `the list has ${listed.get(id) ?? 'nothing'}`,
        });
  }
  return compared;
}

async function widgetAsList({ violations }: Traffic, load: Load): Promise<number> {
  // A result may be as old as its time says.
  const { body } = await load.people.sam.get('/data/Opportunity__c?take=1&includeTotal=true');
  let deals = await load.deals();
  for (let left = 70; left > 0 && deals !== body.total; left--) {
    await pause(1_000);
    deals = await load.deals();
  }
  violations.equal('totals', 'deals in a widget', deals, body.total);
  return deals;
}

/** Each has ended, and its field is there if and only if it succeeded. */
async function deploymentsAsInLedger({ violations }: Traffic, ledger: Ledger, load: Load): Promise<number> {
  const { ada } = load.people;
  for (const status of ['QUEUED', 'VALIDATING', 'DEPLOYING', 'CANCELING']) {
    const answer = await ada.get(`/metadata/deployments?status=${status}`);
    for (const deployment of answer.body.records ?? [])
      violations.add({ oracle: 'nothing half done', what: `the deployment ${deployment.deploymentId} is ${status}` });
  }
  const { body } = await ada.get('/objects/Product/describe');
  const fields = new Set(body.fields.map((field: { apiName: string }) => field.apiName));
  for (const [name, succeeded] of ledger.deployed)
    violations.equal('nothing half done', `the field ${name} is there`, fields.has(name), succeeded);
  return ledger.deployed.size;
}

/** Statements about the tenant's tables, as in test/support/consistency.ts. `$2`: the beginning of names. */
const WRONG: Readonly<Record<string, string>> = {
  'a version of a record that nobody made, or one that is missing': `
    SELECT a."id" FROM "Account" a JOIN _audit t ON t.record_id = a."id" AND t.kind IS NOT NULL AND t.kind <> 'delete'
    WHERE a."name" LIKE $2 || '%' GROUP BY a."id"
    HAVING a."recordVersion" <> count(*) OR a."recordVersion" <> max(t.record_version)
      OR count(*) <> count(DISTINCT t.record_version)`,
  'a record without its complete history': `
    SELECT a."id" FROM "Account" a LEFT JOIN _history h ON h.record_id = a."id" AND h.operation <> 'delete'
    WHERE a."name" LIKE $2 || '%' GROUP BY a."id" HAVING a."recordVersion" <> count(DISTINCT h.record_version)`,
  'an order that was fulfilled without its one invoice': `
    SELECT o."id" FROM "SalesOrder__c" o LEFT JOIN "Invoice__c" i ON i."SalesOrderId__c" = o."id"
    WHERE o."CustomerReference__c" LIKE $2 || '%' AND o."Status__c" = 'fulfilled' GROUP BY o."id" HAVING count(i."id") <> 1`,
};

async function databaseAgrees(traffic: Traffic, ledger: Ledger, load: Load): Promise<number> {
  const keys = ledger.intentions
    .filter(
      ({ client, answer, path }) =>
        client.tenant === 'demo' && answer && answer.status < 300 && path.startsWith('/data/'),
    )
    .filter(({ path }) => !path.startsWith('/data/User/'))
    .map(({ options }) => options.key);
  await findNothingWrong(traffic.cluster.database.url, load.tenantId, keys, WRONG, load.marker).catch(
    (error: Error) => {
      const named = ledger.intentions.filter(({ options }) => error.message.includes(options.key));
      traffic.violations.add({
        oracle: 'the parts of a change agree',
        what: error.message,
        ledger: named.map(({ what, path, body, answer }) => ({ what, path, body, answer: answer?.text })),
      });
    },
  );
  return keys.length;
}

/** `npm run audit -- verify`, as an operator runs it, when everything is sealed. */
async function trailsAreIntact({ cluster, violations }: Traffic): Promise<number> {
  const env = { ...process.env, ...cluster.nats.environment(OPERATOR), LOG_LEVEL: 'silent' };
  for (const end = performance.now() + SEALED_WITHIN_MS; ; await pause(2_000)) {
    const { code, stdout } = await run(process.execPath, ['scripts/audit.ts', 'verify'], { cwd: root, env }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      (error: { code: number; stdout: string }) => error,
    );
    const lines = stdout.trim().split('\n');
    const sealed = lines.every((line) => / intact, .* 0 not sealed yet/.test(line));
    if (code === 0 && sealed) return lines.length;
    if (code === 0 && performance.now() < end) continue;
    violations.add({ oracle: 'the audit chain', what: `exit code ${code}`, server: stdout });
    return lines.length;
  }
}

/** No transaction is left open and no prepared one. */
async function nothingIsHeld({ cluster, violations }: Traffic): Promise<number> {
  const connection = new Connection({ connectionString: cluster.database.url, application_name: 'storm' });
  await connection.connect();
  try {
    const { rows } = await connection.query(
      `SELECT pid, application_name, state, now() - state_change AS since, left(query, 200) AS query
       FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    const { rows: held } = await connection.query(
      `SELECT pid, application_name, state, left(query, 200) AS query FROM pg_stat_activity
       WHERE state LIKE 'idle in transaction%' AND state_change < now() - interval '10 s'
       UNION ALL SELECT 0, owner::text, 'prepared', gid FROM pg_prepared_xacts`,
    );
    for (const one of held)
      violations.add({ oracle: 'nothing half done', what: 'a transaction is left open', server: one });
    return rows.length;
  } finally {
    await connection.end();
  }
}

/** Output of a process on an unexpected error. */
const UNCAUGHT = /uncaught|unhandled|\n\s+at .+\(?(?:file|node):|INTERNAL_ERROR|out of memory/i;

async function logsAreClean(traffic: Traffic): Promise<number> {
  const { cluster, violations } = traffic;
  let lines = 0;
  for (const member of cluster.members) {
    const output = member.output();
    lines += output.split('\n').length;
    for (const secret of [...cluster.secrets, ...traffic.secrets])
      if (output.includes(secret))
        violations.add({
          oracle: 'no secrets in logs',
          what: `${member.name} has printed one`,
          server: around(output, output.indexOf(secret)),
        });
    const found = UNCAUGHT.exec(output);
    if (found) violations.add({ oracle: 'no uncaught errors', what: member.name, server: around(output, found.index) });
  }
  for (const crash of cluster.crashes) violations.add({ oracle: 'no process ends by itself', what: crash });
  return lines;
}

const around = (text: string, index: number): string => text.slice(Math.max(0, index - 600), index + 600);

async function memoryIsBounded({ cluster, violations }: Traffic): Promise<number> {
  for (const { name, memory, memoryLimit } of cluster.members)
    if (memory > memoryLimit)
      violations.add({
        oracle: 'memory',
        what: name,
        ledger: `at most ${memoryLimit / MIB} MiB`,
        server: `${Math.round(memory / MIB)} MiB`,
      });
  return cluster.members.length;
}
