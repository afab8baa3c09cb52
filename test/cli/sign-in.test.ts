/** Sign-in, refresh and sign-out of `erp`, through a browser and by device code. */
import assert from 'node:assert/strict';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { authorize, Browser } from '../api/auth/browser.ts';
import { type Ended, keptErpOf, PROGRAM, userEnvironment } from '../support/erp.ts';
import { exampleNamed, likeExample } from '../support/examples.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { root } from '../support/sources.ts';
import { Terminal } from '../support/terminal.ts';

describe('erp login', () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform();
  });
  after(() => platform.stop());

  /** Calls back once, with the first address in the text that has the given path. */
  const onAddress = (path: string, visit: (url: URL) => Promise<void>) => {
    let visited: Promise<void> | undefined;
    return {
      onStderr: (text: string) => {
        const found = text.match(/https?:\/\/\S+(?=\s)/g)?.find((url) => url.includes(path));
        if (found) visited ??= visit(new URL(found));
      },
      done: async () => visited,
    };
  };

  const signIn = async (
    env: Record<string, string>,
    { user = 'sam@demo.example', args = [] }: { user?: string; args?: string[] } = {},
  ): Promise<Ended & { page: string }> => {
    let page = '';
    const browser = onAddress('/oauth2/authorize', async (url) => {
      const back = await authorize(new Browser(), url, user);
      assert.equal((await fetch(new URL('/other', back))).status, 404);
      assert.equal((await fetch(new URL('/callback?code=forged&state=forged', back))).status, 404);
      const response = await fetch(back);
      assert.match(response.headers.get('content-security-policy') ?? '', /default-src 'none'/);
      page = await response.text();
    });
    const erp = keptErpOf(env);
    const ended = await erp(['login', '--no-browser', '--base-url', platform.baseUrl, ...args], browser);
    await browser.done();
    return { ...ended, page };
  };

  const folderOf = (env: Record<string, string>): string => join(env['HOME'] ?? '', '.config', 'erp');
  const mode = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);
  const credentialsIn = async (env: Record<string, string>) =>
    JSON.parse(await readFile(join(folderOf(env), 'credentials.json'), 'utf8'));

  it('signs in by the browser, stores the tokens readable only by their owner, and shows a page', async () => {
    const env = userEnvironment();
    const { code, stdout, stderr, page } = await signIn(env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Signed in to .* as .*<sam@demo\.example>, profile default\./);
    assert.match(page, /You are signed in/);
    assert.equal(await mode(folderOf(env)), '700');
    for (const name of await readdir(folderOf(env)))
      assert.equal(await mode(join(folderOf(env), name)), name === 'pending' ? '700' : '600', name);
    const { accessToken, refreshToken } = (await credentialsIn(env)).default;
    const who = await keptErpOf(env)(['whoami', '--verbose']);
    assert.match(who.stdout, /sam@demo\.example/);
    for (const text of [stdout, stderr, who.stdout, who.stderr])
      for (const secret of [accessToken, refreshToken]) assert.equal(text.includes(secret), false);
  });

  it("signs in by the commands of the README and the guide, with the guide's output", async () => {
    const [command = '', ...shown] = exampleNamed('docs/guides/use-the-command-line.md#sign-in').split(/(?<=\n)/);
    // The guide's function abbreviates the output of the README.
    const ERP = `npm() { shift 4; "${process.execPath}" "${PROGRAM}" "$@"; }\nerp() { npm run --silent erp -- "$@"; }\n`;
    for (const [block, output, user] of [
      [command.replace('$ ', ''), shown.join(''), 'ada@demo.example'],
      [exampleNamed('README.md#the-first-request 6'), '\nSigned in to …, profile default.\n', 'sam@demo.example'],
    ] as const) {
      const here = (text: string): string => text.replaceAll('http://localhost:3000', platform.baseUrl);
      // No browser is opened: the test visits the printed address.
      const env = { ...userEnvironment(), BROWSER: 'true' };
      const terminal = new Terminal(`${ERP}${here(block)}`, { cwd: root, env });
      const [[, address] = []] = await terminal.until(/^(http\S+\/oauth2\/authorize\S+)\n/);
      await fetch(await authorize(new Browser(), new URL(address!), user));
      assert.equal(await terminal.done(), 0, terminal.output);
      assert.match(terminal.output, likeExample(here(output)));
      if (block.includes('data list')) assert.match(terminal.output, /profile default\.\n(?:.+\t.*\n)+/);
    }
  });

  it('reports why a refused sign-in failed', async () => {
    const env = userEnvironment();
    let page = '';
    const browser = onAddress('/oauth2/authorize', async (url) => {
      const back = new URL(url.searchParams.get('redirect_uri') ?? '');
      back.search = new URLSearchParams({
        error: 'access_denied',
        error_description: 'The person said no.',
        state: url.searchParams.get('state') ?? '',
        iss: platform.baseUrl,
      }).toString();
      page = await (await fetch(back)).text();
    });
    const { code, stderr } = await keptErpOf(env)(['login', '--no-browser', '--base-url', platform.baseUrl], browser);
    await browser.done();
    assert.equal(code, 3);
    assert.match(stderr, /The person said no\./);
    assert.match(page, /The sign-in did not work[\s\S]*The person said no/);
  });

  it('signs in with a code that is entered elsewhere', async () => {
    const env = userEnvironment();
    const browser = onAddress('user_code=', async (url) => {
      const person = new Browser();
      let page = await person.visit(url);
      page = await person.submit(page);
      page = await person.submit(page);
      page = await person.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
      page = await person.submit(page);
      assert.match(page.html, /Your device is connected/);
    });
    const { code, stdout, stderr } = await keptErpOf(env)(
      ['login', '--device', '--base-url', platform.baseUrl],
      browser,
    );
    await browser.done();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /type the code [A-Z]{4}/);
    assert.match(stdout, /sam@demo\.example/);
  });

  it('renews tokens once although several processes need them at the same moment', async () => {
    const env = userEnvironment();
    await signIn(env);
    const before = await credentialsIn(env);
    before.default.expiresAt = 1;
    await writeFile(join(folderOf(env), 'credentials.json'), JSON.stringify(before), { mode: 0o600 });
    const all = await Promise.all(Array.from({ length: 4 }, () => keptErpOf(env)(['whoami'])));
    for (const { code, stderr } of all) assert.equal(code, 0, stderr);
    const after = await credentialsIn(env);
    assert.notEqual(after.default.refreshToken, before.default.refreshToken);
    assert.ok(after.default.expiresAt > Date.now() / 1000);
  });

  it('refuses tokens that other users of the machine can read', async () => {
    const env = userEnvironment();
    await signIn(env);
    const path = join(folderOf(env), 'credentials.json');
    await chmod(path, 0o644);
    const { code, stderr } = await keptErpOf(env)(['whoami']);
    assert.equal(code, 3);
    assert.match(stderr, /can be read by other users/);
    await chmod(path, 0o600);
    await chmod(folderOf(env), 0o755);
    const other = await keptErpOf(env)(['profiles', 'use', 'default']);
    assert.equal(other.code, 0);
    assert.match(other.stderr, /Warning: .* was open to other users/);
    assert.equal(await mode(folderOf(env)), '700');
  });

  it('keeps profiles apart, lists, selects and removes them', async () => {
    const env = userEnvironment();
    const erp = keptErpOf(env);
    await signIn(env);
    const second = await signIn(env, { user: 'ada@demo.example', args: ['--profile', 'admin'] });
    assert.equal(second.code, 0, second.stderr);
    const listed = JSON.parse((await erp(['profiles', 'list', '--json'])).stdout);
    assert.deepEqual(
      listed.map((one: { name: string; used: boolean }) => [one.name, one.used]),
      [
        ['default', false],
        ['admin', true],
      ],
    );
    assert.match((await erp(['whoami'])).stdout, /ada@demo/);
    assert.match((await erp(['whoami', '--profile', 'default'])).stdout, /sam@demo/);
    assert.match((await erp(['whoami'], { env: { ERP_PROFILE: 'default' } })).stdout, /sam@demo/);
    assert.equal((await erp(['profiles', 'use', 'constructor'])).code, 3);
    assert.equal((await erp(['profiles', 'use', 'default'])).code, 0);
    assert.equal((await erp(['profiles', 'remove', 'admin'])).code, 0);
    assert.equal((await erp(['whoami', '--profile', 'admin'])).code, 3);
    assert.match((await erp(['whoami'])).stdout, /sam@demo/);
  });

  it('prints a token for programs, renewed before it expires', async () => {
    const env = userEnvironment();
    await signIn(env);
    const before = await credentialsIn(env);
    before.default.expiresAt = 1;
    await writeFile(join(folderOf(env), 'credentials.json'), JSON.stringify(before), { mode: 0o600 });
    const { code, stdout, stderr } = await keptErpOf(env)(['token']);
    assert.deepEqual([code, stderr], [0, '']);
    const { accessToken } = (await credentialsIn(env)).default;
    assert.notEqual(accessToken, before.default.accessToken);
    assert.equal(stdout, `${accessToken}\n`);
    assert.deepEqual(JSON.parse((await keptErpOf(env)(['token', '--json'])).stdout), { accessToken });
    assert.equal((await keptErpOf(userEnvironment())(['token'])).code, 3);
  });

  it('sends the token of a profile to no other address', async () => {
    const env = userEnvironment();
    await signIn(env);
    const elsewhere = await keptErpOf(env)(['whoami', '--base-url', 'https://127.0.0.1:9']);
    assert.equal(elsewhere.code, 3);
    const named = await keptErpOf(env)(['whoami', '--profile', 'default', '--base-url', 'https://127.0.0.1:9']);
    assert.equal(named.code, 2);
    assert.match(named.stderr, /belongs to/);
  });

  it('ends the sign-in at the platform', async () => {
    const env = userEnvironment();
    await signIn(env);
    const { accessToken } = (await credentialsIn(env)).default;
    const { code, stderr } = await keptErpOf(env)(['logout']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await credentialsIn(env), {});
    const response = await fetch(`${platform.baseUrl}/api/v1/identity`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    assert.equal(response.status, 401);
    assert.equal((await keptErpOf(env)(['whoami'])).code, 3);
  });
});
