/**
 * `npm run --silent audit -- verify [--tenant demo] [--expect POSITION:HASH]`: verifies the audit trails of a running
 * platform against their hash chains. Exit code 0: all are intact; 1: one is not; 2: one could not be checked.
 * Source: docs/reference/audit.md.
 */
import type { ServiceBroker } from 'moleculer';
import { call } from '../contracts/call.ts';
import type { ChainProblem, Verification, VerifyRequest } from '../contracts/data/trail.ts';
import type { TenantInfo } from '../lib/schema/snapshot.ts';
import { readArguments, refuse } from './arguments.ts';
import { joinPlatform, requireServices } from './join.ts';

const COMMAND = {
  name: 'audit',
  usage: 'npm run --silent audit -- verify [--tenant KEY] [--expect POSITION:HASH]',
  exitCode: 2,
};
const PROGRESS_EVERY_MS = 2_000;

const MEANING: Readonly<Record<ChainProblem, string>> = {
  rowMissing: 'the audit row is gone',
  rowAltered: 'the audit row, or the history of its change, is not what was sealed',
  rowInserted: 'an audit row was inserted after its time had been sealed',
  rowBackdated: 'the audit row claims an earlier time than the rows before it',
  historyInserted: 'the history of a record has a row that belongs to no audit row',
  linkMissing: 'a link of the chain is gone',
  linkAltered: 'the link does not follow the one before it',
  linkInserted: 'a link does not belong to the chain',
  endMissing: 'the end of the chain is gone',
  headMissing: 'the head of the chain is gone',
  otherChain: 'the chain is not the one of --expect',
};

interface Asked {
  readonly tenant: string | undefined;
  readonly expect: VerifyRequest['expect'] | null;
}

function whatIsAsked(): Asked {
  const { values, positionals } = readArguments(COMMAND, {
    allowPositionals: true,
    options: { tenant: { type: 'string' }, expect: { type: 'string' } },
  });
  if (positionals.length !== 1 || positionals[0] !== 'verify') refuse(COMMAND, 'The only command is verify.');
  if (values.expect === undefined) return { tenant: values.tenant, expect: null };
  const [, position, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(values.expect) ?? [];
  if (hash === undefined) return refuse(COMMAND, '--expect must be POSITION:HASH, as an earlier check printed it.');
  if (values.tenant === undefined) refuse(COMMAND, '--expect applies to one tenant: add --tenant.');
  return { tenant: values.tenant, expect: { position: Number(position), hash } };
}

async function tenantsOf(broker: ServiceBroker, key: string | undefined): Promise<TenantInfo[]> {
  const found: TenantInfo[] = [];
  for (;;) {
    const after = found.at(-1)?.id;
    const page = await call(
      broker,
      'metadata.tenants.list',
      after === undefined ? { take: 500 } : { after, take: 500 },
    );
    if (page.length === 0) break;
    found.push(...page);
  }
  if (key === undefined) return found;
  const named = found.filter((tenant) => tenant.key === key);
  if (named.length === 0) refuse(COMMAND, `There is no tenant ${key}.`);
  return named;
}

async function verify(
  broker: ServiceBroker,
  tenant: TenantInfo,
  expect: VerifyRequest['expect'] | null,
): Promise<Verification> {
  let reportedAt = performance.now();
  let request: VerifyRequest = { tenantId: tenant.id, ...(expect ? { expect } : {}) };
  for (;;) {
    const part = await call(broker, 'data.audit.verify', request);
    if (part.next === null) return part;
    request = { ...request, from: part.next };
    if (performance.now() - reportedAt < PROGRESS_EVERY_MS) continue;
    reportedAt = performance.now();
    progress(
      part.checked < part.total
        ? `${tenant.key}: ${part.checked} of ${part.total} entries checked (${Math.floor((100 * part.checked) / part.total)} %)`
        : `${tenant.key}: ${part.total} entries checked, looking for entries and history outside the chain`,
    );
  }
}

/** On a terminal one line that is overwritten, otherwise a line each time. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text) console.error(text);
}

function report({ key }: TenantInfo, { broken, checked, position, hash, unsealed }: Verification): void {
  progress('');
  if (broken) {
    const at = broken.position === null ? '' : ` at position ${broken.position}`;
    const row =
      broken.auditId !== null
        ? ` (entry ${broken.auditId})`
        : broken.recordId !== null
          ? ` (record ${broken.recordId})`
          : '';
    console.log(`${key}: BROKEN${at}: ${MEANING[broken.problem]}${row}. ${checked} entries before it are intact.`);
  } else console.log(`${key}: intact, ${checked} entries, ${unsealed} not sealed yet, ends at ${position}:${hash}`);
}

try {
  const { tenant, expect } = whatIsAsked();
  const { broker, leave } = await joinPlatform('audit', { exitCode: 2 });
  await requireServices(broker, 'metadata', 'data');
  let [broken, unchecked] = [0, 0];
  for (const one of await tenantsOf(broker, tenant)) {
    try {
      const result = await verify(broker, one, expect);
      report(one, result);
      if (result.broken) broken++;
    } catch (error) {
      // One trail that cannot be checked must not keep the others from being checked.
      progress('');
      console.log(`${one.key}: NOT CHECKED: ${error instanceof Error ? error.message : error}`);
      unchecked++;
    }
  }
  await leave();
  process.exit(broken ? 1 : unchecked ? 2 : 0);
} catch (error) {
  console.error(`audit: ${error instanceof Error ? error.message : error}`);
  process.exit(2);
}
