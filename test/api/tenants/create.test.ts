/** A new tenant starts from its template, and an interrupted creation is finished by repeating it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { tenantProgram } from '../../../scripts/tenant/program.ts';
import { Session, sentences } from '../../../scripts/tenant/session.ts';
import { createTenant } from '../../../services/metadata/tenants.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { root } from '../../support/sources.ts';
import { makeCompany } from './company.ts';

describe('creating a tenant', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  const create = (params: Parameters<typeof call<'metadata.tenants.create'>>[2]) =>
    call(platform.broker, 'metadata.tenants.create', params);
  const described = async (key: string) => (await call(platform.broker, 'metadata.tenants.describe', { key }))[0];

  it('starts from the ERP, by default', async () => {
    const { admin } = await makeCompany(platform, 'bakery', 'erp');
    const { status, text } = await admin.post('/data/Account', { name: 'First customer' });
    assert.equal(status, 201, text);
    const { body } = await admin.get('/analytics/dashboards');
    assert.ok(body.records.length > 0);
  });

  it('has only users without a template', async () => {
    const { admin } = await makeCompany(platform, 'plain', 'empty');
    assert.equal((await admin.get('/data/Account')).status, 404);
    assert.equal((await admin.get('/data/User')).status, 200);
  });

  it("accepts the template's folder later as well, by the function of the guides", async () => {
    const { tokens } = await makeCompany(platform, 'later', 'empty');
    const deploy = (token: string, baseUrl: string): Promise<{ code: number; stdout: string; stderr: string }> =>
      promisify(execFile)(
        'bash',
        ['--norc', '-u', '-c', 'source docs/guides/functions.sh && deploy "$1" templates/erp', 'bash', token],
        { cwd: root, env: { ...process.env, API: `${baseUrl}/api/v1` } },
      ).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        (error) => error,
      );
    assert.deepEqual(await deploy(tokens.access_token, platform.baseUrl), {
      code: 0,
      stdout: 'templates/erp: SUCCEEDED\n',
      stderr: '',
    });
    // Ends when nothing was accepted, or no answer comes.
    const refused = await deploy('nonsense', platform.baseUrl);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^templates\/erp: not accepted: .*TOKEN_INVALID/);
    const silent = await deploy('nonsense', 'http://127.0.0.1:1');
    assert.deepEqual([silent.code, silent.stderr], [1, 'templates/erp: not accepted: no answer\n']);
  });

  it('completes the creation after a process died between tenant and template', async () => {
    const owner = new Database(platform.database.url, { size: 2, applicationName: 'test' });
    const given = { key: 'halfway', name: 'Halfway Ltd', template: 'erp', timezone: 'Europe/London' } as const;
    await createTenant(owner, 'local', given).finally(() => owner.close());
    assert.equal((await described('halfway'))?.templatePending, true);
    const { created, tenantId } = await create(given);
    assert.equal(created, false);
    const done = await described('halfway');
    assert.deepEqual([done?.templatePending, done?.id], [false, tenantId]);
    const version = done?.metadataVersion;
    assert.ok(version! > 1, 'the template has made a version');
    // And once more, when everything is done.
    assert.deepEqual(await create(given), { created: false, tenantId });
    assert.equal((await described('halfway'))?.metadataVersion, version);
  });

  it('creates one tenant for simultaneous calls', async () => {
    const given = { key: 'race', name: 'Race Ltd', template: 'empty' } as const;
    const made = await Promise.all([create(given), create(given), create(given)]);
    assert.equal(new Set(made.map(({ tenantId }) => tenantId)).size, 1);
    assert.equal(made.filter(({ created }) => created).length, 1);
  });

  describe('with domains', () => {
    /** The output of `tenant create`; throws its error message. */
    const command = async (...words: string[]): Promise<{ domains: string[] }> => {
      const printed: string[] = [];
      const session = new Session(
        async () => platform.broker,
        (line) => printed.push(line),
      );
      const given = ['create', '--template', 'empty', '--json', ...words];
      await tenantProgram('tenant', session)
        .parseAsync(given, { from: 'user' })
        .catch((error: unknown) => {
          throw new Error(sentences(error).join('\n'));
        });
      return JSON.parse(printed.join(''));
    };
    const named = (key: string, ...domains: string[]): string[] => [
      ...['--key', key, '--name', `${key} Ltd`],
      ...domains.flatMap((domain) => ['--domain', domain]),
    ];

    it('creates nothing when one of them belongs to another tenant, and names each conflict', async () => {
      await assert.rejects(
        command(...named('domains', 'free.example', 'Demo.Example', 'no domain', 'acme.example')),
        new Error(
          [
            'The tenant domains cannot have all of these domains.',
            'demo.example is a domain of the tenant demo: remove it there first.',
            'no domain is not a domain, such as example.com.',
            'acme.example is a domain of the tenant acme: remove it there first.',
          ].join('\n'),
        ),
      );
      assert.equal(await described('domains'), undefined);
      const wrong = call(platform.broker, 'auth.domains.check', {
        key: 'domains',
        domains: ['a.example', 'demo.example'],
      });
      await assert.rejects(wrong, (error: Error & { errors: { pointer: string }[] }) => {
        assert.deepEqual(
          error.errors.map(({ pointer }) => pointer),
          ['/domains/1'],
        );
        return true;
      });
    });

    it('accepts them again when it is repeated', async () => {
      for (let i = 0; i < 2; i++)
        assert.deepEqual((await command(...named('domains', 'free.example'))).domains, ['free.example']);
    });

    it('reports the created tenant when a later step fails', async () => {
      await assert.rejects(
        command(...named('unfinished'), '--admin', `${'x'.repeat(600)}@free.example`),
        /^Error: The tenant unfinished is there, but what it was to have is not complete\. Repeat the command once this is/,
      );
      assert.equal((await described('unfinished'))?.key, 'unfinished');
    });
  });

  it('refuses the key of another company, and reports all faults', async () => {
    await assert.rejects(create({ key: 'demo', name: 'Another one', template: 'erp' }), (error: Error) => {
      assert.match(error.message, /There is a tenant demo already\. name was "Northwind Office GmbH"/);
      return true;
    });
    const wrong = { key: 'Demo!', name: ' ', template: 'crm', timezone: 'Mars', currency: '€', locale: '?' };
    await assert.rejects(create(wrong as never), (error: Error & { errors: { pointer: string }[] }) => {
      assert.deepEqual(
        error.errors.map(({ pointer }) => pointer),
        ['/key', '/name', '/template', '/locale', '/timezone', '/currency'],
      );
      return true;
    });
  });

  it('refuses a name with control characters or more than 200 characters', async () => {
    for (const name of ['x'.repeat(201), 'two\nlines', 'bell\u0007'])
      await assert.rejects(create({ key: 'named', name, template: 'empty' }), /name must be a name of 200 characters/);
  });
});
