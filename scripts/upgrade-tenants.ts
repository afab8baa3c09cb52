/** Brings the tables of all tenants up to date for a command of an operator, and says how far it is. */
import type { Database } from '../mixins/database/database.ts';
import { upgradeTenants } from '../services/metadata/tenants.ts';

const PROGRESS_EVERY_MS = 5_000;

/** Answers for how many tenants it has failed: each is named, and the others are brought up to date. */
export async function upgradeTenantsAloud(owner: Database, out: Pick<Console, 'log' | 'error'>): Promise<number> {
  let failed = 0;
  let shownAt = performance.now();
  const upgraded = await upgradeTenants(owner, {
    failed: ({ key }, error) => {
      failed++;
      out.error(`${key}: NOT UP TO DATE: ${error instanceof Error ? error.message : error}`);
    },
    progress: (done, all) => {
      if (performance.now() - shownAt < PROGRESS_EVERY_MS) return;
      shownAt = performance.now();
      out.log(`${done} of ${all} tenants have been worked on.`);
    },
  });
  if (upgraded > 0) out.log(`Upgraded the tables of ${upgraded} tenants.`);
  if (failed > 0)
    out.error(
      `The tables of ${failed} tenants are not up to date: processes of this version answer some of their requests with ` +
        '503. Put right what is said above, and run `npm run migrate` again.',
    );
  return failed;
}
