/** The key that seals cursors and confirmations: derived from the deployment's secret, or generated and stored once. */
import { hkdfSync, randomBytes } from 'node:crypto';
import type { Platform } from '../../mixins/platform.ts';

/** Its name in the table; the first thing that was sealed were cursors. */
const NAME = 'cursor';

/** 32 bytes, the same in every process of the deployment. */
export async function sealingKey({ config, database }: Platform): Promise<Uint8Array> {
  if (config.secret !== null)
    return new Uint8Array(hkdfSync('sha256', config.secret, '', 'cursors of record lists', 32));
  await database.query('INSERT INTO data.secrets (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', [
    NAME,
    randomBytes(32),
  ]);
  const { rows } = await database.query<{ secret: Buffer }>('SELECT secret FROM data.secrets WHERE name = $1', [NAME]);
  const [row] = rows;
  if (row === undefined) throw new Error('The sealing key is missing from data.secrets.');
  return row.secret;
}
