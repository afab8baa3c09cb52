/** What main.ts hands to every service of this process. */

import type { Config } from '../config/env.ts';
import type { Database } from './database/database.ts';

export interface Platform {
  readonly config: Config;
  readonly database: Database;
}
