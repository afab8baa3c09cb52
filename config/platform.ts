/** What main.ts hands to every service of this process. */
import type { Database } from '../mixins/database/database.ts';
import type { Config } from './env.ts';

export interface Platform {
  readonly config: Config;
  readonly database: Database;
}
