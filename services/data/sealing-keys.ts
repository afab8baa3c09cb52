/** The keys that seal cursors and confirmations: derived from the deployment's secret, or generated and stored once. */
import { randomBytes } from 'node:crypto';
import { derivedKeys } from '../../lib/values/derived-keys.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Platform } from '../../mixins/platform.ts';

const PURPOSE = 'cursors of record lists';
/** Its name in the table; the first thing that was sealed were cursors. */
const NAME = 'cursor';

/** The same in every process of the deployment. */
export async function sealingKeys({ config, database }: Pick<Platform, 'config' | 'database'>): Promise<SealingKeys> {
  const [newest, ...older] = derivedKeys(config, PURPOSE);
  if (newest) return [newest, ...older];
  await database.query('INSERT INTO data.secrets (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', [
    NAME,
    randomBytes(32),
  ]);
  const { rows } = await database.query<{ secret: Buffer }>('SELECT secret FROM data.secrets WHERE name = $1', [NAME]);
  const [row] = rows;
  if (row === undefined) throw new Error('The sealing key is missing from data.secrets.');
  return [row.secret];
}
