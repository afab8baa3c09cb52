/**
 * The console on a cluster with TLS and keys of the bus, from the environment of a pod: every command that documents
 * show runs as printed, and what is wrong is refused with the reason.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { ALL_SERVICES } from '../../config/services.ts';
import { Console } from '../support/console.ts';
import { startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';
import { read, repositoryFiles } from '../support/sources.ts';

const BEHIND = ALL_SERVICES.filter((service) => service !== 'gateway');

/** Lines for the console in the documents: in blocks behind its prompt, and in sentences. */
const LINES = /^ *erp \$ (.+)$|`((?:call \w+\.|tenant |limits )[^`[]+)`/gm;
/** Names of commands that are spoken of. */
const NOT_WHOLE = /^tenant (?:export|delete)$/;
const printed = repositoryFiles()
  .filter((path) => /^(docs\/(guides|reference)\/|README)/.test(path) && path.endsWith('.md'))
  .flatMap((path) => [...read(path).matchAll(LINES)].map(([, inBlock, inText]) => ({ path, line: inBlock ?? inText! })))
  .filter(({ line }) => !NOT_WHOLE.test(line));

/** Console output for commands that were not executed. */
const REFUSED =
  /^(There is no|The parameters|[A-Z_]+: |.* is missing: |.* must be an? |.* is not for operators|The call failed)/m;
/** Commands whose example names what is not there any more, with what they say then. */
const NOT_THERE: Readonly<Record<string, RegExp>> = {
  'call metadata.tenants.cancelDeployment': /^DEPLOYMENT_NOT_(FOUND|CANCELABLE): /,
  'call auth.clients.rotateSecret': /^PARAMETER_INVALID: There is no client /,
  'call auth.identityProviders.': /^PARAMETER_INVALID: /,
};

describe('the console on a cluster', function () {
  this.timeout(60_000);
  const platforms: TestPlatform[] = [];
  let nats: Awaited<ReturnType<typeof startSecureNats>>;
  let database: TestPlatform['database'];
  let operator: Console;

  before(async () => {
    const behind = BEHIND.toSorted().join('+');
    [nats, database] = await Promise.all([startSecureNats([behind, 'gateway', 'operator']), createPlatformDatabase()]);
    const begin = async (services: typeof ALL_SERVICES, identity: string): Promise<void> => {
      const { NATS_URL: natsUrl, ...env } = nats.environment(identity) as { NATS_URL: string };
      platforms.push(await startPlatform({ services, natsUrl, database, seed: false, env }));
    };
    await Promise.all([begin(BEHIND, behind), begin(['gateway'], 'gateway')]);
    // As in a pod of metadata to which the files of the operator were copied.
    operator = new Console({
      NODE_ENV: 'production',
      SERVICES: 'metadata',
      HEALTH_PORT: '9090',
      ...nats.environment('metadata'),
      ...nats.environment('operator'),
      DATABASE_URL: `postgres://login_metadata:x@database.internal/erp?sslmode=verify-full&sslrootcert=${nats.environment('operator')['NATS_CA_FILE']}`,
      PLATFORM_SECRET: randomBytes(48).toString('base64'),
      BASE_URL: 'https://erp.example',
    });
    const welcome = await operator.answer();
    assert.match(welcome, /^Joining the cluster on tls:.*\nTry: health, metrics, actions, /);
    // Without a home to keep the history in, it says so and prompts once more, whenever that is.
    let answer = await operator.type('metrics ready-to-begin');
    while (!answer.includes('There is no process ready-to-begin')) answer = await operator.answer();
  });
  after(async () => {
    await operator?.end();
    await Promise.all(platforms.map((platform) => platform.stop()));
    await nats?.stop();
    await database?.drop();
  });

  it('runs every documented line as printed', async () => {
    assert.ok(printed.length > 15);
    const idOf = async (key: string): Promise<string | undefined> => {
      const answer = await operator.type(`call metadata.tenants.get '{"key":"${key}"}'`);
      assert.match(answer, /^(null|\{)/);
      return /id: '([0-9a-f-]{36})'/.exec(answer)?.[1];
    };
    const demo = (await idOf('demo')) ?? assert.fail('no demo tenant');
    // The tenant and the user that the documents speak of, which they make by `npm run tenant`.
    const made = `call metadata.tenants.create '{"key":"lakeside","name":"Lakeside Bakery Ltd","template":"empty"}'`;
    assert.match(await operator.type(made), /created: true/);
    const users = `[{"username":"joan@lakeside.example","email":"joan@lakeside.example","displayName":"Joan Hale","profileApiName":"Administrator"}]`;
    const joan = `call data.users.provision '{"tenantId":"${await idOf('lakeside')}","users":${users}}'`;
    assert.match(await operator.type(joan), /signInNames/);
    for (const { path, line } of printed) {
      const values: Record<string, string> = {
        tenantId: demo,
        'tenantId of the answer': (await idOf('lakeside')) ?? demo,
        'id of demo': demo,
        tenant: demo,
        secret: 'secret',
        username: 'ada@demo.example',
        apiName: 'Portal',
        runId: randomUUID(),
        deploymentId: randomUUID(),
      };
      const filled = line
        .replace(/\bKEY\b/, 'lakeside')
        .replaceAll(/"(\w+)":"…"/g, '"$1":"<$1>"')
        .replaceAll(/<([^>]+)>/g, (_, name: string) => values[name] ?? assert.fail(`${path}: <${name}>`));
      const answer = await operator.type(filled);
      const [, expected] = Object.entries(NOT_THERE).find(([begin]) => line.startsWith(begin)) ?? [];
      if (expected) assert.match(answer, expected, `${path}: ${filled}`);
      else assert.doesNotMatch(answer, REFUSED, `${path}: ${filled}`);
      assert.doesNotMatch(answer, /\n +at .*:\d+/, `${path}: ${filled} shows a stack`);
      assert.notEqual(answer.trim(), '', `${path}: ${filled}`);
    }
  });

  it('shows state and metrics of every process', async () => {
    const health = await operator.type('health');
    assert.match(health, /^gateway\/\S+ \(gateway\): ready$/m);
    assert.match(
      health,
      /^\S+ \(agent, analytics, auth, bulk, calendar, data, events, files, mcp, metadata, notifications, ratelimit\): ready$/m,
    );
    const numbers = await operator.type('metrics gateway');
    assert.match(numbers, /^ {2}version +\d+\.\d+\.\d+, Node \d+\.\S+, PostgreSQL \d/m);
    assert.match(numbers, /^ {2}requests +0 answered, 0 with 5xx, 0 refused by limits/m);
    assert.match(await operator.type('metrics data erp_bus_connected'), /^ {2}erp_bus_connected 1$/m);
    assert.match(await operator.type('metrics nowhere'), /^There is no process nowhere; there are /);
  });

  it('shows parameters and an example, and refuses invalid calls with the reason', async () => {
    const shown = await operator.type('actions auth.domains.add');
    assert.match(
      shown,
      /^auth\.domains\.add: .+\n {2}tenantId +text: .+\n {2}domain +text: .+\n {2}call auth\.domains\.add '\{.+\}'/,
    );
    for (const [line, reason] of [
      ['call auth.domains.add', /^tenantId is missing: .+\ndomain is missing: /],
      [
        `call auth.domains.add '{"tenantID":"x","domain":5}'`,
        /^There is no parameter tenantID: it takes tenantId, domain\.\ntenantId is missing.+\ndomain must be a text/,
      ],
      [
        'call auth.domains.add {"tenantId": "x"}',
        /^The parameters are not JSON .* in single quotes: call auth\.domains\.add '/,
      ],
      ['call auth.domains.ad', /^There is no action auth\.domains\.ad; did you mean auth\.domains\.add\?/],
      [
        'call data.records.list',
        /^data\.records\.list is not for operators: it works for a user, who calls it through the API/,
      ],
      ['call ratelimit.leases.take', /^ratelimit\.leases\.take is not for operators: /],
      [`call metadata.tenants.create '{"key":"A B","name":"x"}'`, /^PARAMETER_INVALID: .*key must be a short name/],
      ['call auth.users.createLink --username nobody@nowhere.example', /^PARAMETER_INVALID: /],
      ['emit auth.keys.rotated', /^There is no command emit; .+ `help` lists all\.\n$/],
      ['metrisc data', /^There is no command metrisc; did you mean metrics\? `help` lists all\.\n$/],
      ['broadcast', /^There is no command broadcast\. `help` lists all\.\n$/],
      ['call', /^error: missing required argument 'action'\n\nUsage: .*call /],
    ] as const)
      assert.match(await operator.type(line), reason, line);
    assert.match(await operator.type('call metadata.tenants.get --key demo'), /key: 'demo'/);
  });

  it('knows tenants by their keys', async () => {
    assert.match(
      await operator.type(`call auth.domains.list '{"tenantId":"demo"}'`),
      /^\{ domains: \[ 'demo\.example'/,
    );
    const nobody = `There is no tenant nobody: \`tenant list\` shows the keys and ids of all.\n`;
    assert.equal(await operator.type(`call auth.domains.list '{"tenantId":"nobody"}'`), nobody);
    assert.equal(
      await operator.type('tenant show nobody'),
      'There is no tenant nobody: `tenant list` shows those that there are.\n',
    );
    assert.equal(
      await operator.type('limits nobody'),
      'There is no tenant nobody: `tenant list` shows those that there are.\n',
    );
  });

  it('has help for every command', async () => {
    const help = await operator.type('help');
    for (const name of ['health', 'metrics', 'actions', 'call', 'limits', 'tenant', 'nodes', 'services']) {
      assert.match(help, new RegExp(`^ {2}${name}\\b`, 'm'));
      assert.match(await operator.type(`help ${name}`), new RegExp(`Usage: .*${name}`));
    }
  });

  it('executes all piped lines in order', async () => {
    const add = `call auth.domains.add '{"tenantId":"demo","domain":"piped.example"}'`;
    const list = `call auth.domains.list '{"tenantId":"demo"}'`;
    const said = await operator.end([add, list, add.replace('.add', '.remove'), list]);
    assert.deepEqual(
      [...said.matchAll(/domains: \[(.*?)\]/gs)].map(([, domains]) => domains!.includes('piped.example')),
      [true, false],
    );
  });
});
