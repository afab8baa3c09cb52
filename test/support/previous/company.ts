/**
 * What two companies have done with a release before it is upgraded: users, records with a history, shares, a model of
 * their own, a dashboard, an agent's run with a request that waits, grants, cursors and requests with keys. All of it is
 * made and read over HTTP, and what was answered is written down, so that the release that comes next can be asked again.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { DEFAULT_DEMO_PASSWORD } from '../../../config/env.ts';
import { signIn, type Tokens } from '../../../scripts/sign-in.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are kept and compared, whatever they hold
type Anything = any;

/** The secret of the installation that is recorded: it protects nothing but this. */
export const RECORDED_SECRET = 'the secret of a recorded installation, which protects nothing';
/** By which the installation is reached, whatever port it listens on: it stands in tokens. */
export const RECORDED_ADDRESS = 'http://127.0.0.1:47311';
/** Those of the release that scopes were asked for in; later ones have more. */
const SCOPE =
  'data:read data:write data:delete actions:read actions:execute analytics:read analytics:run agent:run agent:approve ' +
  'setup:read metadata:deploy me:read audit:read offline_access';

export interface Call {
  readonly who: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

export interface Answered extends Call {
  readonly status: number;
  readonly etag: string | null;
  readonly answer: Anything;
}

export interface Recorded {
  /** When it was recorded, by the clock of the database. */
  readonly at: string;
  /** Version of the release, of package.json. */
  readonly release: string;
  /** Refresh tokens by user. */
  readonly refreshTokens: Record<string, string>;
  /** The one of an agent, for Sam. */
  readonly agentRefreshToken: string;
  /** Keys that tokens are signed with. */
  readonly jwks: Anything;
  /** What was read, to be read again. */
  readonly reads: readonly Answered[];
  /** Changes with their keys, to be repeated. */
  readonly changes: readonly Answered[];
  /** Pages and positions to go on from: the next answers of this release. */
  readonly cursors: readonly Answered[];
  readonly followed: Call;
  /** A request of Sam's under a run that waits for Mia. */
  readonly waiting: { readonly request: Answered; readonly approvalId: string; readonly fingerprint: string };
  readonly runId: string;
  /** A deployment that can be taken back. */
  readonly deploymentId: string;
  /** Statements that processes of the release have sent, each with its login. */
  readonly statements: readonly (readonly [login: string, text: string])[];
}

/** Sends a call with an access token; retries nothing. */
export async function send(baseUrl: string, token: string, call: Call): Promise<Answered> {
  const response = await fetch(`${baseUrl}/api/v1${call.path}`, {
    method: call.method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(call.body === null ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    },
    body: call.body,
  });
  const text = await response.text();
  return {
    ...call,
    status: response.status,
    etag: response.headers.get('etag'),
    answer: text === '' ? null : JSON.parse(text),
  };
}

const CRATE = `type: CustomObject
apiName: Crate__c
label: Crate
labelPlural: Crates
nameField:
  label: Name
  fieldType: text
sharingDefault: private
api:
  published: true
features:
  history: true
  search: true
`;
const FIELD = `type: CustomField
object: Crate__c
apiName: Weight__c
label: Weight
fieldType: decimal
precision: 10
scale: 2
`;
const PERMISSIONS = `type: PermissionSet
apiName: Crates
label: Crates
objects:
  Crate__c:
    create: true
    read: true
    update: true
    delete: true
    viewAll: false
    modifyAll: false
  Invoice__c:
    create: true
    read: true
    update: true
    delete: true
    viewAll: false
    modifyAll: false
`;
const WIDGET = {
  widgetKey: 'count',
  title: 'Accounts',
  type: 'metric',
  layout: { x: 0, y: 0, w: 3, h: 2 },
  query: { objectApiName: 'Account', measures: [{ key: 'count', aggregation: 'count' }] },
};

/** Works with an installation that has the demo tenants and nothing else, and writes down what it answers. */
export async function workAndRecord(baseUrl: string): Promise<Omit<Recorded, 'at' | 'release' | 'statements'>> {
  const tokens = new Map<string, Tokens>();
  const changes: Answered[] = [];
  for (const user of ['ada', 'sam', 'mia', 'eve']) {
    const username = `${user}@${user === 'eve' ? 'acme' : 'demo'}.example`;
    tokens.set(user, await signIn({ baseUrl, user: username, password: DEFAULT_DEMO_PASSWORD, scope: SCOPE }));
  }
  const call = async (who: string, method: string, path: string, body?: object, more = {}): Promise<Answered> => {
    const key = method === 'GET' ? {} : { 'idempotency-key': randomUUID() };
    const text = body === undefined ? null : JSON.stringify(body);
    const token = tokens.get(who)!.access_token;
    return send(baseUrl, token, { who, method, path, headers: { ...key, ...more }, body: text });
  };
  const done = async (...args: Parameters<typeof call>): Promise<Answered> => {
    const answered = await call(...args);
    assert.ok(answered.status < 300, JSON.stringify(answered));
    if (answered.method !== 'GET') changes.push(answered);
    return answered;
  };
  const deploy = async (files: Record<string, string>, types: [string, string][]): Promise<string> => {
    const named = { version: 1, types: types.map(([name, member]) => ({ name, members: [member] })) };
    const { answer } = await done('ada', 'POST', '/metadata/deploy', { files, package: named });
    for (;;) {
      const found = await call('ada', 'GET', `/metadata/deployments/${answer.deploymentId}`);
      if (found.answer.status === 'SUCCEEDED') return answer.deploymentId;
      assert.ok(!['FAILED', 'CANCELED'].includes(found.answer.status), JSON.stringify(found.answer));
    }
  };
  const id = async (who: string): Promise<string> => (await call(who, 'GET', '/identity')).answer.user.id;

  // A model of their own, and users that may use it.
  await deploy({ 'objects/Crate__c/object.yaml': CRATE }, [['CustomObject', 'Crate__c']]);
  await deploy({ 'permissionSets/Crates.yaml': PERMISSIONS }, [['PermissionSet', 'Crates']]);
  const deploymentId = await deploy({ 'objects/Crate__c/fields/Weight__c.yaml': FIELD }, [
    ['CustomField', 'Crate__c.Weight__c'],
  ]);
  for (const who of ['sam', 'mia']) {
    const user = await call('ada', 'GET', `/data/User/${await id(who)}`);
    await done(
      'ada',
      'PATCH',
      `/data/User/${user.answer.id}`,
      { permissionSetApiNames: ['Crates'] },
      { 'if-match': user.etag },
    );
  }
  const person = {
    username: 'nora@demo.example',
    email: 'nora@demo.example',
    displayName: 'Nora',
    profileApiName: 'SalesRep',
  };
  const nora = await done('ada', 'POST', '/data/User', person);
  await done('ada', 'PATCH', `/data/User/${nora.answer.id}`, { active: false }, { 'if-match': nora.etag });

  // Records that were created, changed, deleted, brought back and shared.
  const account = await done('sam', 'POST', '/data/Account', { name: 'Harbour Works' });
  const changed = await done(
    'sam',
    'PATCH',
    `/data/Account/${account.answer.id}`,
    { description: 'One' },
    { 'if-match': account.etag },
  );
  await done(
    'sam',
    'PATCH',
    `/data/Account/${account.answer.id}`,
    { description: 'Two' },
    { 'if-match': changed.etag },
  );
  const crates: Answered[] = [];
  for (const name of ['Left', 'Right', 'Deleted', 'Back'])
    crates.push(await done('sam', 'POST', '/data/Crate__c', { name }));
  const [left, right, deleted, back] = crates.map(({ answer, etag }) => ({ at: `/data/Crate__c/${answer.id}`, etag }));
  for (const one of [deleted!, back!]) await done('sam', 'DELETE', one.at, undefined, { 'if-match': one.etag });
  await done('sam', 'POST', `${back!.at}/restore`);
  await done('sam', 'POST', `${left!.at}/shares`, {
    principalType: 'user',
    principalId: await id('mia'),
    access: 'read',
    reason: 'Holiday cover',
  });
  const followedFrom = (await done('mia', 'GET', '/data/Crate__c/changes')).answer.resumeCursor;
  await done('sam', 'PATCH', left!.at, { name: 'Left again' }, { 'if-match': left!.etag });
  // Another company, which has nothing of this one.
  await done('eve', 'POST', '/data/Account', { name: 'Of Acme' });

  // A dashboard of which others see one version while the next one is drawn.
  const drawn = { name: 'Before the upgrade', widgets: [WIDGET] };
  const { answer: dashboard } = await done('sam', 'POST', '/analytics/dashboards', drawn);
  const at = `/analytics/dashboards/${dashboard.dashboardId}`;
  await done('sam', 'POST', `${at}/publish`, { expectedRevision: dashboard.revision });

  // An agent's request that waits for a person, and the refusal of one that nobody may make.
  const invoice = await done('sam', 'POST', '/data/Invoice__c', { AccountId__c: account.answer.id, Amount__c: 100 });
  const { answer: run } = await done('sam', 'POST', '/agent/runs', { agentKey: 'clean-up', goal: 'Delete a draft.' });
  const request = await call('sam', 'DELETE', `/data/Invoice__c/${invoice.answer.id}`, undefined, {
    'if-match': invoice.etag,
    'x-agent-run-id': run.runId,
  });
  assert.equal(request.answer.code, 'APPROVAL_REQUIRED', JSON.stringify(request));
  const { approvalId, fingerprint } = request.answer.details;
  assert.equal((await call('sam', 'POST', '/data/User', { username: 'x' })).status, 403);
  const agent = await signIn({
    baseUrl,
    user: 'sam@demo.example',
    password: DEFAULT_DEMO_PASSWORD,
    clientId: 'demo-DunningAgent',
    scope: 'data:read agent:run offline_access',
  });

  const reads: Answered[] = [];
  for (const path of [
    '/data/Account?take=200&sort=[{"id":"name","desc":false},{"id":"id","desc":false}]',
    '/data/Invoice__c?take=200&sort=[{"id":"id","desc":false}]',
    '/data/Crate__c?take=200&sort=[{"id":"name","desc":false}]',
    '/data/Account?search=harbour',
    `/data/Account/${account.answer.id}`,
    `/data/Account/${account.answer.id}/history`,
    left!.at,
    `${left!.at}/shares`,
    right!.at,
    deleted!.at,
    `${back!.at}/history`,
    at,
    '/analytics/dashboards?pageSize=100',
    `/agent/runs/${run.runId}`,
    `/agent/runs/${run.runId}/steps`,
  ])
    for (const who of ['sam', 'mia']) reads.push(await call(who, 'GET', path));
  for (const path of [
    '/data/User?take=200&sort=[{"id":"username","desc":false}]',
    '/events/audit?take=200',
    `/agent/approvals/${approvalId}`,
    `/metadata/deployments/${deploymentId}`,
  ])
    reads.push(await call('ada', 'GET', path));
  for (const path of [
    '/data/Account?take=200&sort=[{"id":"id","desc":false}]',
    '/data/SalesOrder__c?take=20&sort=[{"id":"id","desc":false}]',
    '/data/InvoiceLine__c?take=20&sort=[{"id":"id","desc":false}]',
    '/data/User?take=200&sort=[{"id":"username","desc":false}]',
  ])
    reads.push(await call('eve', 'GET', path));

  const cursors: Answered[] = [];
  for (const [who, path] of [
    ['eve', '/data/Account?take=3&sort=[{"id":"name","desc":false}]'],
    ['ada', '/events/audit?take=3'],
  ] as const) {
    const { answer } = await done(who, 'GET', path);
    cursors.push(await call(who, 'GET', `${path}&cursor=${encodeURIComponent(answer.nextCursor)}`));
  }
  const followed = {
    who: 'mia',
    method: 'GET',
    path: `/data/Crate__c/changes?cursor=${encodeURIComponent(followedFrom)}`,
  };
  cursors.push(await call('mia', 'GET', followed.path));
  const jwks = await fetch(`${baseUrl}/oauth2/jwks`);
  return {
    refreshTokens: Object.fromEntries([...tokens].map(([who, { refresh_token }]) => [who, refresh_token!])),
    agentRefreshToken: agent.refresh_token!,
    jwks: await jwks.json(),
    reads,
    changes,
    cursors,
    followed: { ...followed, headers: {}, body: null },
    waiting: { request, approvalId, fingerprint },
    runId: run.runId,
    deploymentId,
  };
}
