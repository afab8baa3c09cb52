/** Supported versions of PostgreSQL. Source: docs/reference/operations.md#postgresql. */
import { ConfigError } from '../../config/env.ts';
import type { Database } from './database.ts';

/** The oldest version that is supported; `npm run test:nightly` runs on it as well. */
export const OLDEST_POSTGRESQL = 15;
/** The newest version that the suites have run on: that of the embedded server. */
export const NEWEST_POSTGRESQL = 18;

/** Throws when the server is too old, and warns when its version is untested. */
export async function requireSupportedServer(database: Database, warn: (message: string) => void): Promise<void> {
  const { rows } = await database.query<{ version: string }>("SELECT current_setting('server_version_num') AS version");
  const { refusal, warning } = judgeServer(Number(rows[0]?.version));
  if (refusal) throw new ConfigError(refusal);
  if (warning) warn(warning);
}

/** `version`: as in server_version_num, such as 150012. */
export function judgeServer(version: number): { readonly refusal?: string; readonly warning?: string } {
  const major = Math.floor(version / 10_000);
  if (major < OLDEST_POSTGRESQL)
    return {
      refusal: `The database server is PostgreSQL ${major}: the platform needs ${OLDEST_POSTGRESQL} or later.`,
    };
  if (major > NEWEST_POSTGRESQL)
    return {
      warning:
        `The database server is PostgreSQL ${major}: this version of the platform was tested with ` +
        `${OLDEST_POSTGRESQL} to ${NEWEST_POSTGRESQL}.`,
    };
  return {};
}
