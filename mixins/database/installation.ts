/**
 * An installation's settings as stored in its database, so that a process with the wrong settings does not start on
 * it: that it is used in production, and by which PLATFORM_SECRET its processes know each other.
 * Source: docs/reference/configuration.md.
 */
import { type Config, ConfigError } from '../../config/env.ts';
import { ALL_SERVICES } from '../../config/services.ts';
import { type DeploymentSecrets, derivedKeys } from '../../lib/values/derived-keys.ts';
import type { Database } from './database.ts';
import { addPropertySql, INSTALL, IS_INSTALLED, letUseSql, propertySql, setPropertySql } from './installation.sql.ts';
import { loginOf } from './logins.ts';
import { oneByOne } from './migrate.ts';

const PRODUCTION = 'production';
const SECRET = 'secretFingerprint';

/** Makes the table, as the owner of the database, once the logins are there. Auth alone may change what it holds. */
export function ensureInstallation(owner: Database): Promise<void> {
  return oneByOne(owner, async (tx) => {
    await tx.query(INSTALL);
    for (const service of ALL_SERVICES) await tx.query(letUseSql(loginOf(service), service === 'auth'));
  });
}

/** True once a production process has used this database. */
export async function usedInProduction(database: Database): Promise<boolean> {
  const { rows } = await database.query<{ yes: boolean }>(IS_INSTALLED);
  return rows[0]?.yes === true && (await property(database, PRODUCTION)) !== null;
}

/** Throws where a process that is not of production would work on the data of one. Asked before anything is changed. */
export async function keepFromProduction(database: Database, config: Config): Promise<void> {
  if (config.production || config.developmentOnProduction || !(await usedInProduction(database))) return;
  throw new ConfigError(
    'This database is used in production, and this process is not started for it: set NODE_ENV=production, or ' +
      'DATABASE_ALLOW_DEVELOPMENT=true to work on it without the checks of production.',
  );
}

/** Remembers for good that a process of production works on this database. */
export async function markProduction(database: Database): Promise<void> {
  await database.query(addPropertySql(PRODUCTION, 'true'));
}

/**
 * Before a process joins the others: what it is started for must fit what the database remembers, and so must its secret.
 */
export async function joinInstallation(database: Database, config: Config): Promise<void> {
  const { rows } = await database.query<{ yes: boolean }>(IS_INSTALLED);
  if (rows[0]?.yes !== true)
    throw new ConfigError(
      'The table platform.installation is missing: run `npm run migrate` with the DATABASE_URL of the owner.',
    );
  await keepFromProduction(database, config);
  if (config.production) await markProduction(database);
  await checkSecret(database, config);
}

/**
 * Once it has joined them: the first process that has a secret decides. Not before, or one that the others do not let in
 * (mixins/bus/shared-secret.ts) would have decided against them.
 */
export async function rememberSecret(database: Database, config: Config): Promise<void> {
  const [newest] = fingerprints(config);
  if (newest === undefined) return;
  await database.query(addPropertySql(SECRET, newest));
  await checkSecret(database, config);
}

async function checkSecret(database: Database, secrets: DeploymentSecrets): Promise<void> {
  const [newest, ...older] = fingerprints(secrets);
  const agreed = await property(database, SECRET);
  if (agreed === null || agreed === newest || older.includes(agreed)) return;
  throw new ConfigError(
    newest === undefined
      ? 'PLATFORM_SECRET is not set, but the other processes on this database have one: set the same here.'
      : 'This process has another PLATFORM_SECRET than the others on this database: set the same everywhere.',
  );
}

/** After everything stored was sealed with the present secret: a process must have it from now on. */
export async function agreeOnSecret(database: Database, secrets: DeploymentSecrets): Promise<void> {
  const [newest] = fingerprints(secrets);
  if (newest !== undefined) await database.query(setPropertySql(SECRET, newest));
}

async function property(database: Database, name: string): Promise<string | null> {
  return (await database.query<{ value: string }>(propertySql(name))).rows[0]?.value ?? null;
}

/** They tell secrets apart and tell nothing about them; that of what is sealed from now on is first. */
export const fingerprints = (secrets: DeploymentSecrets): string[] =>
  derivedKeys(secrets, 'fingerprint of the secret').map((key) => key.toString('base64url'));
