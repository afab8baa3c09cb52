/**
 * A tenant with objects of every relationship, and users with different rights, to try the data service on. Calls go to
 * its actions with the context that the gateway would give them.
 */
import { hash, randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import type { Asker, RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply, Scope } from '../../../lib/operation.ts';
import { requestId } from '../../../lib/values/ids.ts';
import { Database } from '../../../mixins/database/database.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const object = (apiName: string, more: string[] = [], nameField = 'fieldType: text') =>
  [
    'type: CustomObject',
    `apiName: ${apiName}`,
    `label: ${apiName}`,
    `labelPlural: ${apiName}`,
    'nameField:',
    '  label: Name',
    ...nameField.split('\n').map((line) => `  ${line}`),
    'sharingDefault: readWrite',
    ...(more.some((line) => line.startsWith('api:')) ? [] : ['api:', '  published: true']),
    'features:',
    '  history: true',
    '  search: true',
    '  events: true',
    ...more,
    '',
  ].join('\n');

const field = (objectName: string, apiName: string, fieldType: string, more: string[] = []) =>
  [
    'type: CustomField',
    `apiName: ${apiName}`,
    `object: ${objectName}`,
    `label: ${apiName}`,
    `fieldType: ${fieldType}`,
    ...more,
    '',
  ].join('\n');

const reference = (to: string, relationshipName: string, onDelete?: string) => [
  'referenceTo:',
  `  - ${to}`,
  `relationshipName: ${relationshipName}`,
  ...(onDelete ? [`onDelete: ${onDelete}`] : []),
];

const COMPANY_FIELDS: Record<string, [string, string[]?]> = {
  Code__c: ['text', ['unique: true', 'externalId: true', 'length: 40']],
  Amount__c: ['currency', ['precision: 18', 'scale: 2']],
  Quantity__c: ['decimal', ['precision: 10', 'scale: 3', 'minimum: 0']],
  Count__c: ['integer'],
  Active__c: ['boolean', ['defaultValue: true']],
  Kind__c: [
    'picklist',
    [
      'picklist:',
      '  restricted: true',
      '  values:',
      '    - value: a',
      '      label: A',
      '      default: true',
      '    - value: b',
      '      label: B',
    ],
  ],
  Sub__c: [
    'picklist',
    [
      'picklist:',
      '  restricted: true',
      '  controllingField: Kind__c',
      '  values:',
      '    - value: a1',
      '      label: A1',
      '      validFor:',
      '        - a',
      '    - value: b1',
      '      label: B1',
      '      validFor:',
      '        - b',
    ],
  ],
  Tags__c: [
    'multiPicklist',
    [
      'picklist:',
      '  restricted: true',
      '  values:',
      '    - value: x',
      '      label: X',
      '    - value: y',
      '      label: Y',
    ],
  ],
  Website__c: ['url'],
  Email__c: ['email'],
  Day__c: ['date'],
  When__c: ['dateTime'],
  Note__c: ['longText'],
  Data__c: ['json'],
  Place__c: ['geolocation'],
  Secret__c: ['text', ['unique: true']],
  Fixed__c: ['text'],
  ParentId__c: ['reference', reference('Company__c', 'Children__r', 'setNull')],
};

const READ_WRITE = ['create', 'read', 'update', 'delete'];

function bundle(
  type: 'Profile' | 'PermissionSet',
  apiName: string,
  system: string[],
  objects: Record<string, string[]>,
  fields: Record<string, 'read' | 'edit'>,
): string {
  return [
    `type: ${type}`,
    `apiName: ${apiName}`,
    `label: ${apiName}`,
    ...(system.length ? ['system:', ...system.map((name) => `  - ${name}`)] : []),
    ...(Object.keys(objects).length ? ['objects:'] : []),
    ...Object.entries(objects).flatMap(([name, given]) => [
      `  ${name}:`,
      ...['create', 'read', 'update', 'delete', 'viewAll', 'modifyAll'].map(
        (key) => `    ${key}: ${given.includes(key)}`,
      ),
    ]),
    ...(Object.keys(fields).length ? ['fields:'] : []),
    ...Object.entries(fields).flatMap(([name, given]) => [
      `  ${name}:`,
      '    read: true',
      `    edit: ${given === 'edit'}`,
    ]),
    '',
  ].join('\n');
}

const clerkFields: Record<string, 'read' | 'edit'> = {
  ...Object.fromEntries(
    Object.keys(COMPANY_FIELDS)
      .filter((name) => name !== 'Secret__c')
      .map((name) => [`Company__c.${name}`, name === 'Fixed__c' ? 'read' : 'edit'] as const),
  ),
  'Ticket__c.CompanyId__c': 'edit',
  'Item__c.CompanyId__c': 'edit',
  'Part__c.ItemId__c': 'edit',
};

/** The project that is deployed; more files may be added or replace these. */
export const FILES: Readonly<Record<string, string>> = {
  'objects/Company__c/object.yaml': object('Company__c'),
  ...Object.fromEntries(
    Object.entries(COMPANY_FIELDS).map(([name, [type, more]]) => [
      `objects/Company__c/fields/${name}.yaml`,
      field('Company__c', name, type, more ?? []),
    ]),
  ),
  'objects/Ticket__c/object.yaml': object('Ticket__c', [], 'fieldType: autoNumber\nformat: TIC-{00000}'),
  'objects/Ticket__c/fields/CompanyId__c.yaml': field(
    'Ticket__c',
    'CompanyId__c',
    'reference',
    reference('Company__c', 'Tickets__r', 'restrict'),
  ),
  'objects/Item__c/object.yaml': object('Item__c'),
  'objects/Item__c/fields/CompanyId__c.yaml': field(
    'Item__c',
    'CompanyId__c',
    'masterDetail',
    reference('Company__c', 'Items__r', 'cascade'),
  ),
  'objects/Part__c/object.yaml': object('Part__c'),
  'objects/Part__c/fields/ItemId__c.yaml': field(
    'Part__c',
    'ItemId__c',
    'masterDetail',
    reference('Item__c', 'Parts__r', 'cascade'),
  ),
  'objects/Vault__c/object.yaml': object('Vault__c'),
  'objects/Draft__c/object.yaml': object('Draft__c', ['api:', '  published: false']),
  'profiles/Clerk.yaml': bundle(
    'Profile',
    'Clerk',
    ['apiEnabled'],
    { Company__c: READ_WRITE, Ticket__c: READ_WRITE, Item__c: READ_WRITE, Part__c: READ_WRITE, Draft__c: READ_WRITE },
    clerkFields,
  ),
  'profiles/Reader.yaml': bundle(
    'Profile',
    'Reader',
    ['apiEnabled'],
    { Company__c: ['read'] },
    { 'Company__c.Code__c': 'read' },
  ),
  'profiles/Nobody.yaml': bundle('Profile', 'Nobody', [], {}, {}),
  'permissionSets/UserAdmin.yaml': bundle('PermissionSet', 'UserAdmin', ['manageUsers'], {}, {}),
};

const ALL_SCOPES: readonly Scope[] = [
  'data:read',
  'data:write',
  'data:delete',
  'actions:read',
  'actions:execute',
  'users:manage',
];

export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: Anything;
  text: string;
}

export interface CallOptions {
  key?: string;
  etag?: string;
  ifNoneMatch?: string;
  /** X-Duplicate-Confirmation. */
  confirmation?: string;
  scopes?: readonly Scope[];
  ieee754Compatible?: boolean;
  agentRunId?: string;
  /** Milliseconds that the caller waits; default 30,000. */
  patienceMs?: number;
  requestId?: string;
}

export interface Person {
  readonly userId: string;
  readonly tenantId: string;
  /** For whom a service asks when it asks for this person. */
  readonly asker: Asker;
  send(
    operationId: string,
    path: Record<string, string>,
    query?: Record<string, unknown>,
    body?: unknown,
    options?: CallOptions,
  ): Promise<Reply>;
  list(objectApiName: string, query?: Record<string, unknown>, options?: CallOptions): Promise<Reply>;
  get(objectApiName: string, id: string, options?: CallOptions & { fields?: string }): Promise<Reply>;
  create(objectApiName: string, body: unknown, options?: CallOptions): Promise<Reply>;
  update(objectApiName: string, id: string, body: unknown, options?: CallOptions): Promise<Reply>;
  delete(objectApiName: string, id: string, options?: CallOptions): Promise<Reply>;
  /** Tries out what `body` says. */
  check(objectApiName: string, body: unknown, options?: CallOptions): Promise<Reply>;
}

export interface World {
  readonly platform: TestPlatform;
  readonly database: Database;
  readonly tenantId: string;
  readonly otherTenantId: string;
  readonly admin: Person;
  readonly clerk: Person;
  readonly reader: Person;
  readonly nobody: Person;
  /** Administrator of another tenant with the same objects. */
  readonly stranger: Person;
  person(tenantId: string, userId: string, clientId?: string): Person;
  /** Ends an agent run of the tenant, which need not have begun. */
  endRun(runId: string): Promise<void>;
  deploy(tenantId: string, files: Record<string, string>): Promise<void>;
  /** Rows of the tenant's schema, as the login role. */
  rows(text: string, values?: unknown[]): Promise<Record<string, Anything>[]>;
  stop(): Promise<void>;
}

const ACTION_OF: Record<string, string> = {
  'schema.objects.list': 'data.objects.list',
  'schema.objects.describe': 'data.objects.describe',
  'schema.objects.getSchema': 'data.objects.getSchema',
  'agent.runs.revert': 'data.agentRuns.revert',
};

export async function createWorld(): Promise<World> {
  const platform = await startPlatform({ seed: false });
  try {
    return await fill(platform);
  } catch (error) {
    await platform.stop();
    if (error instanceof PlatformError) error.message += ` ${JSON.stringify(error.details ?? error.errors)}`;
    throw error;
  }
}

async function fill(platform: TestPlatform): Promise<World> {
  const { broker } = platform;
  const database = new Database(platform.database.url, { size: 4, applicationName: 'test world' });
  const users: Record<string, string> = {};
  const makeTenant = async (key: string): Promise<string> => {
    const { tenantId } = await call(broker, 'metadata.tenants.create', {
      template: 'empty',
      key,
      name: key,
      timezone: 'Europe/Berlin',
    });
    await call(broker, 'metadata.templates.deploy', { tenantId, files: { ...FILES } });
    const person = (name: string, profileApiName: string) => ({
      username: `${name}@${key}.example`,
      email: `${name}@${key}.example`,
      displayName: name,
      profileApiName,
      password: 'a long password',
    });
    const { userIds } = await call(broker, 'data.users.provision', {
      tenantId,
      users: [
        person('admin', 'Administrator'),
        person('clerk', 'Clerk'),
        person('reader', 'Reader'),
        person('nobody', 'Nobody'),
      ],
    });
    Object.assign(users, userIds);
    return tenantId;
  };
  const tenantId = await makeTenant('one');
  const otherTenantId = await makeTenant('two');

  /** A run that is active; agent would have made it. */
  const beginRun = (tenant: string, userId: string, clientId: string, runId: string) =>
    database.query({
      text: `INSERT INTO agent.runs (tenant_id, run_id, agent_key, goal, dry_run, user_id, client_id, grant_id,
          max_cost, max_mutations, max_records, expires_at)
        VALUES ($1, $2, 'test', 'Tests.', false, $3, $4, 'grant', 10000, 1000, 10000, now() + interval '1 hour')
        ON CONFLICT DO NOTHING`,
      values: [tenant, runId, userId, clientId],
    });

  const person = (tenant: string, userId: string, clientId = 'test'): Person => {
    const contextOf = ({ scopes = ALL_SCOPES, agentRunId, patienceMs, ...own }: CallOptions = {}): RequestContext => ({
      requestId: own.requestId ?? requestId(),
      clientRequestId: null,
      tenantId: tenant,
      userId,
      clientId,
      grantId: 'grant',
      scopes,
      agent: false,
      person: true,
      agentRunId: agentRunId ?? null,
      tokenExpiresAt: null,
      ip: '127.0.0.1',
      channel: 'api',
      deadline: Date.now() + (patienceMs ?? 30_000),
    });
    const send: Person['send'] = async (operationId, path, query = {}, body, options = {}) => {
      if (options.agentRunId) await beginRun(tenant, userId, clientId, options.agentRunId);
      const request = contextOf(options);
      const params: OperationCall = { operationId, path, query, headers: {} };
      if (body !== undefined) params.body = body;
      if (options.etag !== undefined) params.headers.ifMatch = options.etag;
      if (options.ifNoneMatch !== undefined) params.headers.ifNoneMatch = options.ifNoneMatch;
      if (options.confirmation !== undefined) params.headers.duplicateConfirmation = options.confirmation;
      if (options.ieee754Compatible) params.ieee754Compatible = true;
      if (/\.(create|update|delete|upsert|restore|execute|revert)$/.test(operationId)) {
        params.headers.idempotencyKey = options.key ?? randomUUID();
        params.fingerprint = hash(
          'sha256',
          JSON.stringify([operationId, path, query, options.etag ?? '', options.confirmation ?? '', body ?? null]),
        );
      }
      const reply = (await broker.call(ACTION_OF[operationId] ?? operationId, params, {
        meta: { request },
      })) as OperationReply;
      const text = Buffer.isBuffer(reply.body) ? reply.body.toString() : JSON.stringify(reply.body);
      return { status: reply.status ?? 200, headers: reply.headers ?? {}, text, body: JSON.parse(text) };
    };
    return {
      userId,
      tenantId: tenant,
      send,
      get asker() {
        return contextOf();
      },
      list: (objectApiName, query, options) => send('data.records.list', { objectApiName }, query, undefined, options),
      get: (objectApiName, id, options) =>
        send(
          'data.records.get',
          { objectApiName, id },
          options?.fields ? { fields: options.fields } : {},
          undefined,
          options,
        ),
      create: (objectApiName, body, options) => send('data.records.create', { objectApiName }, {}, body, options),
      update: (objectApiName, id, body, options) =>
        send('data.records.update', { objectApiName, id }, {}, body, options),
      delete: (objectApiName, id, options) =>
        send('data.records.delete', { objectApiName, id }, {}, undefined, options),
      check: (objectApiName, body, options) =>
        send('data.records.check', { objectApiName }, {}, JSON.parse(JSON.stringify(body)), options),
    };
  };
  return {
    platform,
    database,
    tenantId,
    otherTenantId,
    admin: person(tenantId, users['admin@one.example']!),
    clerk: person(tenantId, users['clerk@one.example']!),
    reader: person(tenantId, users['reader@one.example']!),
    nobody: person(tenantId, users['nobody@one.example']!),
    stranger: person(otherTenantId, users['admin@two.example']!),
    person,
    endRun: async (runId) => {
      await database.query({
        text: `INSERT INTO agent.runs (tenant_id, run_id, status, agent_key, goal, dry_run, user_id, client_id, grant_id,
            max_cost, max_mutations, max_records, expires_at, ended_at)
          VALUES ($1, $2, 'COMPLETED', 'test', 'Tests.', false, $3, 'test', 'grant', 0, 0, 0, now(), now())
          ON CONFLICT (tenant_id, run_id) DO UPDATE SET status = 'COMPLETED', ended_at = now()`,
        values: [tenantId, runId, users['clerk@one.example']],
      });
    },
    deploy: async (tenant, files) => {
      await call(broker, 'metadata.templates.deploy', { tenantId: tenant, files });
    },
    rows: async (text, values) => {
      const schema = `"t_${tenantId.replaceAll('-', '')}"`;
      return (await database.query<Record<string, Anything>>(text.replaceAll('$schema', schema), values)).rows;
    },
    stop: async () => {
      await database.close();
      await platform.stop();
    },
  };
}

/** The error that a call is refused with; fails when it is not refused. */
export async function refusal(promise: Promise<unknown>): Promise<PlatformError> {
  const result = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!('error' in result)) throw new Error(`Not refused: ${JSON.stringify((result.value as Reply).body)}`);
  if (!(result.error instanceof PlatformError)) throw result.error;
  return result.error;
}

export const codes = (error: PlatformError): string[] =>
  (error.errors ?? []).map((violation) => `${violation.pointer} ${violation.code}`).sort();
