/**
 * The settings of every session, and whether a session keeps them. Logins carry the settings as defaults (ALTER ROLE), so
 * that no connection needs startup parameters, which poolers refuse or ignore; a session that begins without them gets
 * them once. Source: docs/reference/operations-cluster.md#a-connection-pooler.
 */
import type pg from 'pg';
import { LIMITS } from '../../lib/limits.ts';
import { identifier, literal } from '../../lib/values/sql-text.ts';
import { PageClient } from './page-client.ts';

interface Setting {
  readonly name: string;
  readonly value: string;
  /** Time limits compare as durations: the server prints 2000 ms as `2s`. */
  readonly isDuration?: boolean;
}

const milliseconds = (name: string, ms: number): Setting => ({ name, value: `${ms}ms`, isDuration: true });

/** Nothing depends on the server's locale or defaults. */
const SETTINGS: readonly Setting[] = [
  { name: 'TimeZone', value: 'UTC' },
  // A backslash in a quoted text is a backslash.
  { name: 'standard_conforming_strings', value: 'on' },
  { name: 'IntervalStyle', value: 'iso_8601' },
  { name: 'DateStyle', value: 'ISO, MDY' },
  // A duplicate request waits this long for its key.
  milliseconds('lock_timeout', LIMITS.idempotency_wait_ms),
  // A statement that runs too long ends while its request can still be answered. Reads of a request end earlier.
  milliseconds('statement_timeout', LIMITS.statement_timeout_ms),
  milliseconds('idle_in_transaction_session_timeout', 30_000),
  { name: 'jit', value: 'off' },
];

const setSql = ({ name, value }: Setting): string => `SET ${name} = ${literal(value)}`;

const SET_ALL = SETTINGS.map(setSql).join('; ');

/** Ends what a statement has set for itself. Not RESET: the defaults of the session may be those of the server. */
export const RESTORE_TIME_LIMITS = SETTINGS.filter(({ name }) => ['lock_timeout', 'statement_timeout'].includes(name))
  .map(setSql)
  .join('; ');

const differs = ({ name, value, isDuration }: Setting): string =>
  isDuration
    ? `current_setting('${name}')::interval <> ${literal(value)}::interval`
    : `current_setting('${name}') <> ${literal(value)}`;

/** A replica that takes over keeps its connections: those that it is given afterwards report another place. */
const RECOGNISE = `SELECT concat_ws('/', system_identifier,
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END) AS place,
    pg_backend_pid() AS pid, ${SETTINGS.map(differs).join(' OR ')} AS unset
  FROM pg_control_system()`;

/** Makes the settings the defaults of a login in this database. */
export const defaultsSql = (login: string): string => `DO $$
DECLARE
  wanted text[] := ARRAY[${SETTINGS.map(({ name, value }) => literal(`${name}=${value}`)).join(', ')}];
BEGIN
  IF EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole JOIN pg_database d ON d.oid = s.setdatabase
    WHERE r.rolname = ${literal(login)} AND d.datname = current_database() AND s.setconfig @> wanted) THEN RETURN; END IF;
  ${SETTINGS.map(
    (setting) =>
      `EXECUTE format(${literal(`ALTER ROLE ${identifier(login)} IN DATABASE %I ${setSql(setting)}`)}, current_database());`,
  ).join('\n  ')}
EXCEPTION WHEN insufficient_privilege THEN NULL; -- The role is another installation's: its sessions get the settings one by one.
END $$`;

/** The session cannot keep what the platform sets on it. */
class UnsuitablePooler extends Error {
  readonly code = 'ERP_POOL_MODE';

  constructor() {
    super(
      'the pooler between the platform and PostgreSQL hands a connection to another client after each transaction; ' +
        'set pool_mode = session for this database in the pooler',
    );
  }
}

interface Recognised {
  readonly place: string;
  readonly pid: number;
  readonly unset: boolean;
}

/** How long a session may take to begin: a pooler without a free connection answers nothing. */
const BEGIN_MS = 5_000;
/** How often a session is asked for its process while another one holds a transaction. */
const LOOKS = 5;
const PROTOCOL_VIOLATION = '08P01';

/** Reads the session's state. Missing settings are applied, with one more statement. */
export const beginSession = (client: pg.Client): Promise<Recognised> =>
  inTime(client, async () => {
    const { rows } = await client.query<Recognised>(RECOGNISE);
    const [found] = rows;
    if (!found) throw new Error('Assertion failed: a row without FROM is always there');
    if (found.unset) await client.query(SET_ALL);
    return found;
  });

/** A pooler answers in the name of a process of its own. */
export const isPooled = (client: pg.Client, { pid }: Recognised): boolean => client.processID !== pid;

/** Throws where the pooler in between gives the process of this session to others between its transactions. */
export async function requireSessionMode(client: pg.Client, pid: number, url: string): Promise<void> {
  const other = new PageClient({ connectionString: url, connectionTimeoutMillis: BEGIN_MS });
  const processOf = async (asked: pg.Client): Promise<number | undefined> =>
    (await asked.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
  try {
    await other.connect();
    await inTime(other, async () => {
      await other.query('BEGIN').catch((error) => {
        // Not even transactions keep their process.
        throw error.code === PROTOCOL_VIOLATION ? new UnsuitablePooler() : error;
      });
      if ((await processOf(other)) === pid) throw new UnsuitablePooler();
      for (let look = 1; look <= LOOKS; look++)
        if ((await inTime(client, () => processOf(client))) !== pid) throw new UnsuitablePooler();
    });
  } finally {
    await other.end().catch(() => {});
  }
}

/** Ends the connection that takes too long, which fails what waits for it. */
async function inTime<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => client.connection.stream.destroy(), BEGIN_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}
