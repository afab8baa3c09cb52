/**
 * The keys that seal what callers keep and send back, such as cursors: derived from the deployment's secret, or
 * generated and stored once, by each service for itself.
 */
import { randomBytes } from 'node:crypto';
import { derivedKeys } from '../lib/values/derived-keys.ts';
import type { SealingKeys } from '../lib/values/sealed.ts';
import type { Platform } from './platform.ts';

/** Its name in the table; the first thing that was sealed were cursors. */
const NAME = 'cursor';

/** The same in every process of the deployment. The service has a table of secrets. */
export async function sealingKeys(
  { config, database, service }: Pick<Platform, 'config' | 'database' | 'service'>,
  purpose: string,
): Promise<SealingKeys> {
  const [newest, ...older] = derivedKeys(config, purpose);
  if (newest) return [newest, ...older];
  const table = `${service}.secrets`;
  await database.query(`INSERT INTO ${table} (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, [
    NAME,
    randomBytes(32),
  ]);
  const { rows } = await database.query<{ secret: Buffer }>(`SELECT secret FROM ${table} WHERE name = $1`, [NAME]);
  const [row] = rows;
  if (row === undefined) throw new Error(`The sealing key is missing from ${table}.`);
  return [row.secret];
}
