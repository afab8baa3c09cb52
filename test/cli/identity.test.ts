/** `erp` with a token of the environment: results, failures and exit codes. */
import assert from 'node:assert/strict';
import { tokenFor } from '../support/client.ts';
import { erpOf, userEnvironment } from '../support/erp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('erp with a token', () => {
  let platform: TestPlatform;
  let env: Record<string, string>;

  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
  });
  after(() => platform.stop());

  it('says who one is, a name and its value per line where nobody looks on', async () => {
    const { code, stdout, stderr } = await erpOf(env)(['whoami']);
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.match(stdout, /^user\t.*<ada@demo\.example>$/m);
  });

  it('prints exactly what the API has answered with --json', async () => {
    const { code, stdout } = await erpOf(env)(['whoami', '--json']);
    assert.equal(code, 0);
    const response = await fetch(`${platform.baseUrl}/api/v1/identity`, {
      headers: { authorization: `Bearer ${env['ERP_TOKEN']}` },
    });
    assert.equal(stdout, `${await response.text()}\n`);
  });

  it('ends with 3 and the request id when the token is refused, and never shows the token', async () => {
    const token = `${env['ERP_TOKEN']?.slice(0, -8)}AAAAAAAA`;
    const erp = erpOf({ ...env, ERP_TOKEN: token });
    const { code, stdout, stderr } = await erp(['whoami', '--verbose']);
    assert.equal(code, 3);
    assert.equal(stdout, '');
    assert.match(stderr, /TOKEN_INVALID[\s\S]*request req_\w{26}/);
    assert.equal(stderr.includes(token.slice(0, 30)), false);
    const json = await erp(['whoami', '--json']);
    assert.equal(json.code, 3);
    assert.equal(JSON.parse(json.stderr).code, 'TOKEN_INVALID');
  });

  it('ends with 2 for what it does not know, and with 3 when nobody is signed in', async () => {
    const erp = erpOf(userEnvironment());
    assert.equal((await erp(['whoami', '--nonsense'])).code, 2);
    assert.equal((await erp(['nonsense'])).code, 2);
    const { code, stderr } = await erp(['whoami']);
    assert.equal(code, 3);
    assert.match(stderr, /erp login/);
  });

  it('sends no token over an unencrypted connection to another machine', async () => {
    const { code, stderr } = await erpOf(env)(['whoami', '--base-url', 'http://erp.example']);
    assert.equal(code, 2);
    assert.match(stderr, /not encrypted/);
  });
});
