/**
 * A company goes live on an installation that was brought up by the pages for operators alone, and everything that its first
 * year brings happens to it: people come, a tenant is suspended, moved, erased and brought back, the secret is replaced, the
 * processes are. Each step runs the commands that its page prints.
 */
import assert from 'node:assert/strict';
import { ALL_SERVICES } from '../../config/services.ts';
import { Production } from './production.ts';

const CLUSTER_PAGE = 'docs/reference/operations-cluster.md';
const GUIDE = 'docs/guides/operators.md';

describe('a company goes live', function () {
  this.timeout(180_000);
  let production: Production;

  before(async () => {
    production = await Production.begin();
  });
  after(() => production?.end());
  const lap = performance.now();
  let at = lap;
  afterEach(function () {
    console.log(`      ${((performance.now() - at) / 1000).toFixed(1)} s`);
    at = performance.now();
  });

  it('database, Secrets and keys of the bus are made as printed', async () => {
    let password = '';
    await production.sql(`${GUIDE}#start-and-stop 3`, (text) =>
      text.replaceAll('…', () => (password = 'f'.repeat(8) + Math.random().toString(36).slice(2))),
    );
    await production.run(`${CLUSTER_PAGE}#kubernetes 3`, {
      change: (text) => {
        const rest = /^ +… the same for (.+) … \\\n/m.exec(text)!;
        const gateway = /^.*DATABASE_URL_GATEWAY.*\n/m.exec(text)![0];
        const others = rest[1]!.split(/, | and /).map((name) =>
          gateway
            .replace('GATEWAY', name)
            .replace('login_gateway', `login_${name.toLowerCase()}`)
            .replace(/:[0-9a-f]{48}@/, () => `:${crypto.randomUUID().replaceAll('-', '')}@`),
        );
        return text.replace(rest[0], others.join('')).replace(/(DATABASE_URL='postgres:\/\/erp:)[^@]+/, `$1${password}`);
      },
    });
    await production.run(`${CLUSTER_PAGE}#kubernetes 4`);
    await production.startNats(production.file('keys'));
  });

  it('migrate', async () => {
    const address = (name: string) => production.secret('platform', name);
    const names = ['DATABASE_URL', ...ALL_SERVICES.map((s) => `DATABASE_URL_${s.toUpperCase()}`)];
    const out = await production.shell('npm run migrate', {
      NODE_ENV: 'production',
      ...Object.fromEntries(names.map((name) => [name, address(name)])),
    });
    console.log(out);
  });

  it('starts', async () => {
    await production.startAll();
    for (const pod of production.pods.values()) console.log(await (await production.ready(pod)).text());
  });

  it('tenant', async () => {
    console.log(await production.run(`${GUIDE}#a-new-tenant`, { env: production.operator }));
  });
});
