/** Random worlds in PostgreSQL. QUERY_WORLDS sets how many worlds are tried, QUERY_SEED replays one run. */
import fc from 'fast-check';
import { Database } from '../../../mixins/database/database.ts';
import { createDatabase, migrateMetadata, type TestDatabase } from '../../support/database.ts';
import { type Generate, randomWorld, storeWorld, type World } from './world.ts';

export const SCHEMA = 't_01939f6e000070008000000000000001';
export const seed = Number(process.env['QUERY_SEED'] ?? Date.now() % 1_000_000_000);

export const worldsOr = (count: number): number => Number(process.env['QUERY_WORLDS'] ?? count);

/** A database for the tests of the suite around it. */
export function suiteDatabase(): () => Database {
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'query test' });
    await migrateMetadata(database);
  });
  after(async () => {
    await database.close();
    await server.drop();
  });
  return () => database;
}

/** Each world is stored, with a few records. */
export const inRandomWorlds = (
  database: Database,
  worlds: number,
  check: (world: World, g: Generate) => Promise<void>,
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const world = randomWorld(g);
      await storeWorld(world, database, SCHEMA);
      await check(world, g);
    }),
    { seed, numRuns: worlds, endOnFailure: true },
  );

/** Asks in each world about a hidden field, and about one that does not exist in its place. */
export const withHiddenFields = (
  worlds: number,
  check: (world: World, objectApiName: string, field: string) => void,
): void =>
  fc.assert(
    fc.property(fc.gen(), (g) => {
      const world = randomWorld(g);
      for (const path of world.hidden) {
        const [objectApiName, field] = path.split('.') as [string, string];
        check(world, objectApiName, field);
      }
    }),
    { seed, numRuns: worlds },
  );
