/** The key that cursors are sealed with: derived from the deployment's secret, or made once and kept in the database. */
import { hkdfSync, randomBytes } from 'node:crypto';
import type { Platform } from '../../mixins/platform.ts';

const NAME = 'cursor';

/** 32 bytes, the same in every process of the deployment. */
export async function cursorKey({ config, database }: Platform): Promise<Uint8Array> {
  if (config.secret !== null)
    return new Uint8Array(hkdfSync('sha256', config.secret, '', 'cursors of record lists', 32));
  await database.query('INSERT INTO data.secrets (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', [
    NAME,
    randomBytes(32),
  ]);
  const { rows } = await database.query<{ secret: Buffer }>('SELECT secret FROM data.secrets WHERE name = $1', [NAME]);
  return rows[0]!.secret;
}
