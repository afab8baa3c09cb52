/** A tenant whose configuration tests can change: its actions are called on the bus, as the gateway would. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { OPERATIONS } from '../../contracts/operations.ts';
import type { RequestContext } from '../../lib/context.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { requestId } from '../../lib/values/ids.ts';
import { Database } from '../../mixins/database/database.ts';
import { locate } from '../../services/metadata/kinds/registry.ts';
import { type Answer, type Api, api, demoPassword, tokenFor } from './client.ts';
import { startPlatform, type TestPlatform } from './platform.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

export interface MetadataTenant {
  readonly platform: TestPlatform;
  readonly database: Database;
  readonly tenantId: string;
  /** Quoted schema of the tenant. */
  readonly schema: string;
  readonly users: Readonly<Record<string, string>>;
  call(
    operationId: string,
    call?: Partial<OperationCall>,
    user?: string,
    scopes?: RequestContext['scopes'],
  ): Promise<OperationReply & { json: Anything }>;
  retrieve(types: Record<string, string[]>): Promise<Anything>;
  validate(files: Record<string, string>, more?: object): Promise<Anything>;
  /** Deploys and waits for the end; answers the Deployment. */
  deploy(files: Record<string, string>, more?: object): Promise<Anything>;
  /** Deploys; it must succeed. */
  deployed(files: Record<string, string>): Promise<void>;
  accept(files: Record<string, string>, more?: object): Promise<Anything>;
  finished(deploymentId: string): Promise<Anything>;
  /** The state of a deployment. */
  state(deploymentId: string): Promise<string>;
}

/** A package that names everything in `files`. */
export const wholePackage = (files: Record<string, string>): Anything => {
  const found = Object.keys(files).flatMap((path) => locate(path) ?? []);
  const byType = Map.groupBy(found, ({ kind }) => kind.type);
  return {
    version: 1,
    types: [...byType].map(([name, members]) => ({ name, members: members.map(({ fullName }) => fullName) })),
  };
};

/** Deploys over HTTP as an administrator and waits for the end; it must succeed. */
export async function deployOverHttp(admin: Api, files: Record<string, string>): Promise<void> {
  const found = await deploymentEnded(
    admin,
    await admin.post('/metadata/deploy', { files, package: wholePackage(files) }),
  );
  assert.equal(found.status, 'SUCCEEDED', JSON.stringify([found.error, found.blocked]));
}

/** The deployment that was accepted, when it has ended. */
export async function deploymentEnded(user: Api, { status, body, text }: Answer): Promise<Anything> {
  assert.equal(status, 202, text);
  for (let i = 0; i < 1_200; i++) {
    const { body: found } = await user.get(`/metadata/deployments/${body.deploymentId}`);
    if (['SUCCEEDED', 'FAILED', 'CANCELED'].includes(found.status)) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.fail(`The deployment did not end: ${text}`);
}

/** A new tenant over HTTP: the API as its administrator. */
export const createTenantOverHttp = async (platform: TestPlatform): Promise<Api> =>
  api(platform.baseUrl, await tokenOfNewTenant(platform));

/** A new tenant: a token of its administrator. */
export async function tokenOfNewTenant({ broker, baseUrl }: TestPlatform): Promise<string> {
  const key = newKey();
  const username = `admin@${key}.example`;
  const { tenantId } = (await broker.call('metadata.tenants.create', { template: 'empty', key, name: 'Test' })) as {
    tenantId: string;
  };
  await broker.call('auth.domains.add', { tenantId, domain: `${key}.example` });
  await broker.call('data.users.provision', {
    tenantId,
    users: [
      { username, email: username, displayName: 'Admin', profileApiName: 'Administrator', password: demoPassword() },
    ],
  });
  return tokenFor(baseUrl, username);
}

/** All components of a tenant, in as many retrieves as that takes: texts by path, and the hash of each part. */
export async function retrieveAll(admin: Api): Promise<{ files: Record<string, string>; hashes: string[] }> {
  const files: Record<string, string> = {};
  const hashes: string[] = [];
  const retrieve = async (types: { name: string; members: string[] }[]): Promise<Anything> => {
    const { status, body, text } = await admin.post('/metadata/retrieve', { package: { version: 1, types } });
    assert.equal(status, 200, text.slice(0, 500));
    return body;
  };
  const { body } = await admin.get('/metadata/types');
  for (const { type: name } of body.records) {
    const part = await retrieve([{ name, members: ['*'] }]);
    hashes.push(part.manifestHash);
    for (const [path, text] of Object.entries<string>(part.files)) if (locate(path)) files[path] = text;
  }
  return { files, hashes };
}

const RAW = new Set(OPERATIONS.filter(({ requestBody }) => requestBody?.kind === 'raw').map(({ action }) => action));

let tenants = 0;
const newKey = (): string => `t${Date.now().toString(36)}${tenants++}`;

/** A new tenant with the users `admin` (Administrator), `reader` (metadataRead) and `nobody` (Standard). */
export async function createMetadataTenant(platform: TestPlatform): Promise<MetadataTenant> {
  const { broker } = platform;
  const key = newKey();
  const { tenantId } = (await broker.call('metadata.tenants.create', { template: 'empty', key, name: 'Test' })) as {
    tenantId: string;
  };
  await broker.call('auth.domains.add', { tenantId, domain: `${key}.example` });
  await broker.call('metadata.templates.deploy', {
    tenantId,
    files: {
      'profiles/Reader.yaml':
        'type: Profile\napiName: Reader\nlabel: Reader\nsystem:\n  - apiEnabled\n  - metadataRead\n',
    },
  });
  const people = { admin: 'Administrator', reader: 'Reader', nobody: 'Standard' };
  const { userIds } = (await broker.call('data.users.provision', {
    tenantId,
    users: Object.entries(people).map(([name, profileApiName]) => ({
      username: `${name}@${key}.example`,
      email: `${name}@${key}.example`,
      displayName: name,
      profileApiName,
      password: 'a long enough password',
    })),
  })) as { userIds: Record<string, string> };
  const users = Object.fromEntries(Object.keys(people).map((name) => [name, userIds[`${name}@${key}.example`]!]));
  const database = new Database(platform.database.url, { size: 4, applicationName: 'metadata test' });

  const call: MetadataTenant['call'] = async (operationId, given = {}, user = 'admin', scopes = []) => {
    const request: RequestContext = {
      requestId: requestId(),
      clientRequestId: null,
      tenantId,
      userId: users[user] ?? user,
      clientId: `${key}-test`,
      grantId: randomUUID(),
      scopes,
      agent: false,
      person: true,
      agentRunId: null,
      tokenExpiresAt: null,
      ip: '127.0.0.1',
      channel: 'api',
      deadline: Date.now() + 30_000,
    };
    const params: OperationCall = {
      operationId,
      path: {},
      query: {},
      headers: {},
      fingerprint: createHash('sha256')
        .update(JSON.stringify(given.body ?? null))
        .digest('hex'),
      ...given,
    };
    // The gateway hands on the bytes of some bodies.
    if (RAW.has(operationId) && given.body !== undefined) params.body = Buffer.from(JSON.stringify(given.body));
    const reply = (await broker.call(operationId, params, { meta: { request } })) as OperationReply;
    const { body } = reply;
    return { ...reply, json: Buffer.isBuffer(body) ? JSON.parse(body.toString()) : body };
  };
  const accept: MetadataTenant['accept'] = async (files, more = {}) =>
    (
      await call('metadata.deployments.create', {
        body: { files, package: wholePackage(files), ...more },
        headers: { idempotencyKey: randomUUID() },
      })
    ).json;
  const finished: MetadataTenant['finished'] = async (deploymentId) => {
    for (let i = 0; i < 2_400; i++) {
      const { json } = await call('metadata.deployments.get', { path: { deploymentId } });
      if (['SUCCEEDED', 'FAILED', 'CANCELED'].includes(json.status)) return json;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('The deployment did not end within a minute.');
  };
  return {
    platform,
    database,
    tenantId,
    schema: `"t_${tenantId.replaceAll('-', '')}"`,
    users,
    call,
    accept,
    finished,
    state: async (deploymentId) =>
      (await call('metadata.deployments.get', { path: { deploymentId } }, 'reader')).json.status,
    retrieve: async (types) =>
      (
        await call('metadata.components.retrieve', {
          body: { package: { version: 1, types: Object.entries(types).map(([name, members]) => ({ name, members })) } },
        })
      ).json,
    validate: async (files, more = {}) =>
      (await call('metadata.components.validate', { body: { files, package: wholePackage(files), ...more } })).json,
    deploy: async (files, more = {}) => finished((await accept(files, more)).deploymentId),
    deployed: async (files) => {
      const done = await finished((await accept(files)).deploymentId);
      assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    },
  };
}

/** A tenant with a platform of its own. */
export interface StartedTenant extends MetadataTenant {
  /** Stops the platform and drops its database. */
  stop(): Promise<void>;
}

/** Starts a platform without the demo tenants, and makes such a tenant there. Call stop() in the after-hook. */
export async function startMetadataTenant(): Promise<StartedTenant> {
  const platform = await startPlatform({ seed: false });
  try {
    const tenant = await createMetadataTenant(platform);
    const stop = async (): Promise<void> => {
      await tenant.database.close();
      await platform.stop();
    };
    return { ...tenant, stop };
  } catch (error) {
    await platform.stop();
    throw error;
  }
}

/** Files of a small object with the given fields (YAML below `fieldType`, by apiName). */
export function objectFiles(name: string, fields: Record<string, string> = {}, more = ''): Record<string, string> {
  const files: Record<string, string> = {
    [`objects/${name}/object.yaml`]: `type: CustomObject\napiName: ${name}\nlabel: ${name}\nlabelPlural: ${name}s\nnameField:\n  label: Name\n  fieldType: text\napi:\n  published: true\n${more}`,
  };
  for (const [field, yaml] of Object.entries(fields)) Object.assign(files, fieldFile(name, field, yaml));
  return files;
}

export const fieldFile = (object: string, field: string, yaml: string): Record<string, string> => ({
  [`objects/${object}/fields/${field}.yaml`]: `type: CustomField\napiName: ${field}\nobject: ${object}\nlabel: ${field}\n${yaml.trim()}\n`,
});

/** A destructive manifest that deletes the members of `types`, and that lets those of `alters` lose data. */
export const destructiveManifest = (
  types: Record<string, readonly string[]>,
  alters: Record<string, readonly string[]> = {},
): Record<string, string> => {
  const list = (members: Record<string, readonly string[]>): object[] =>
    Object.entries(members).map(([name, names]) => ({ name, members: names }));
  return {
    'manifest/destructiveChanges.yaml': JSON.stringify({ version: 1, types: list(types), alters: list(alters) }),
  };
};
