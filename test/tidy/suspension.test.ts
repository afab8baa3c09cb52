/** The reference of tenants lists each place that decides what a suspended tenant may do. */
import assert from 'node:assert/strict';
import { read, repositoryFiles } from '../support/sources.ts';

/** Asks whether a tenant is suspended, to let something go on or not. */
const DECIDES =
  /isSuspended\(|refusedTenant\(|refuseSuspended\(|suspendedStatement\(|[!.]tenantSuspended\b|tenant\??\.suspended\b|alsoSuspended[:,]/;
/** The check that it calls, or the value that it passes to one. */
const SAYS: readonly string[] = [
  'services/auth/clients.ts',
  'services/auth/provider/suspended.ts',
  'services/data/connections/confirm.sql.ts',
];

describe('suspended tenant', () => {
  it('is checked exactly in the places that the reference lists', () => {
    const page = read('docs/reference/tenants.md');
    const section = page.slice(page.indexOf('\n## Suspended\n'), page.indexOf('\n## Deleted\n'));
    const named = [...section.matchAll(/`((?:services|mixins)\/[^`]+)`/g)].map(([, path]) => path!);
    const deciding = repositoryFiles().filter(
      (path) => /^(?:services|mixins|lib|web)\/.*\.ts$/.test(path) && !SAYS.includes(path) && DECIDES.test(read(path)),
    );
    assert.deepEqual([...new Set(named)].sort(), deciding.sort());
  });
});
