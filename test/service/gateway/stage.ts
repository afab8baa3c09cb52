/**
 * A gateway and a ratelimit service on a broker of their own, in front of services that answer what a test tells them
 * to. Tokens are real: signed with keys that the stub of auth publishes.
 */
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { ServiceBroker } from 'moleculer';
import { type TSchema, Type } from 'typebox';
import { brokerOptions } from '../../../config/broker.ts';
import { type Config, readConfig } from '../../../config/env.ts';
import type { Admission, Admitted } from '../../../contracts/agent.ts';
import type { AuthActions, GrantState, HttpReply, HttpRequest } from '../../../contracts/auth.ts';
import { duplicateConfirmation } from '../../../contracts/data/mutations.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Operation, OperationCall, OperationReply } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { openBlobs } from '../../../mixins/blobs/open.ts';
import { natsBus } from '../../../mixins/bus/nats-bus.ts';
import { ConnectionQueue } from '../../../mixins/database/connection-queue.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { Jobs } from '../../../mixins/jobs/jobs.ts';
import { Metrics } from '../../../mixins/metrics/metrics.ts';
import { peerCheck } from '../../../mixins/peer-check.ts';
import gatewayService from '../../../services/gateway/gateway.service.ts';
import ratelimitService from '../../../services/ratelimit/ratelimit.service.ts';
import { OPEN_POLICY } from '../../support/nats.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
  json: any;
}

export interface SendOptions {
  token?: string | null;
  headers?: Record<string, string>;
  body?: unknown;
}

export const TENANT = uuidv7();
export const USER = uuidv7();
const CLIENT = 'test-client';

/** Grants under a limit per day, whose units come back slowly enough (one in 86,400 s / `daily`) to be counted exactly. */
export const dailyLimit = (daily: number): Pick<GrantState, 'rateLimits'> => ({
  rateLimits: {
    client: { connection: null, concurrency: null },
    tenant: { connection: null, tenant: null, daily, concurrency: null },
  },
});

export const row = (more: Partial<Operation> & Pick<Operation, 'operationId' | 'method' | 'path'>): Operation => ({
  tag: 'data',
  summary: 'Stub',
  scopes: ['data:read'],
  risk: 'low',
  cost: 1,
  mutation: false,
  precondition: 'none',
  agentApproval: 'never',
  stability: 'stable',
  response: { status: 200, description: 'Done.', schema: Type.Object({}) },
  errors: [],
  action: 'stub.answer',
  ...more,
});

const parameter = (name: string, schema: TSchema, more: object = {}) => ({ name, description: name, schema, ...more });

/** Rows that show every rule of the edge without any service of the platform. */
const STUB_OPERATIONS: readonly Operation[] = [
  row({
    operationId: 'stub.records.list',
    method: 'GET',
    path: '/stub/{objectApiName}',
    queryParameters: [
      parameter('take', Type.Integer({ minimum: 1 })),
      parameter('includeTotal', Type.Boolean()),
      parameter('direction', Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
      parameter('filters', Type.Object({}), { json: true }),
      parameter('search', Type.String()),
    ],
  }),
  row({
    operationId: 'stub.records.create',
    method: 'POST',
    path: '/stub/{objectApiName}',
    scopes: ['data:write'],
    mutation: true,
    cost: 2,
    headerParameters: [duplicateConfirmation],
    requestBody: { required: true, schema: Type.Object({}), maxBytes: 1024 * 1024, validate: false },
    response: { status: 201, description: 'Created.' },
  }),
  row({ operationId: 'stub.records.get', method: 'GET', path: '/stub/{objectApiName}/{id}' }),
  row({
    operationId: 'stub.records.query',
    method: 'POST',
    path: '/stub/{objectApiName}/query',
    requestBody: {
      required: true,
      schema: Type.Object(
        {
          take: Type.Optional(Type.Integer()),
          name: Type.String(),
          nested: Type.Optional(Type.Object({ a: Type.Integer() }, { additionalProperties: false })),
        },
        { additionalProperties: false },
      ),
      maxBytes: 4_096,
    },
  }),
  row({
    operationId: 'stub.records.update',
    method: 'PATCH',
    path: '/stub/{objectApiName}/{id}',
    scopes: ['data:write'],
    mutation: true,
    dryRun: true,
    precondition: 'ifMatch',
    checkedBy: { operationId: 'stub.records.check', as: 'update' },
    cost: 2,
    requestBody: {
      required: true,
      schema: Type.Object({}),
      contentTypes: ['application/merge-patch+json'],
      maxBytes: 1024 * 1024,
      validate: false,
    },
  }),
  row({
    operationId: 'stub.records.delete',
    method: 'DELETE',
    path: '/stub/{objectApiName}/{id}',
    scopes: ['data:delete'],
    risk: 'high',
    mutation: true,
    dryRun: true,
    agentApproval: 'policy',
    precondition: 'ifMatch',
    checkedBy: { operationId: 'stub.records.check', as: 'delete' },
    cost: 2,
  }),
  row({
    operationId: 'stub.records.check',
    method: 'POST',
    path: '/stub/{objectApiName}/check',
    scopes: 'authenticated',
    requestBody: { required: true, schema: Type.Object({}), maxBytes: 1024 * 1024, validate: false },
  }),
  row({
    operationId: 'stub.revisions.publish',
    method: 'POST',
    path: '/revisions/{id}/publish',
    scopes: 'authenticated',
    mutation: true,
    precondition: 'expectedRevision',
    queryParameters: [parameter('expectedRevision', Type.Integer())],
  }),
  row({ operationId: 'stub.costly.run', method: 'POST', path: '/costly', scopes: 'authenticated', cost: 5 }),
  row({
    operationId: 'stub.deployments.get',
    method: 'GET',
    path: '/deployments/{deploymentId}',
    freePoll: true,
    scopes: 'authenticated',
  }),
  row({ operationId: 'stub.gone.get', method: 'GET', path: '/gone', scopes: 'authenticated', action: 'gone.get' }),
  row({
    operationId: 'stub.remote.get',
    method: 'GET',
    path: '/remote',
    scopes: 'authenticated',
    action: 'metadata.answer',
    queryParameters: [parameter('delay', Type.Integer())],
  }),
  row({
    operationId: 'stub.configuration.check',
    method: 'POST',
    path: '/configuration',
    scopes: 'authenticated',
    permission: 'metadataRead',
    requestBody: { required: true, schema: Type.Object({}), maxBytes: 8 * 1024 * 1024, validate: false },
  }),
  row({
    operationId: 'stub.access.update',
    method: 'PUT',
    path: '/access/{objectApiName}',
    scopes: ['data:write'],
    stepUp: ['User'],
    checkedBy: { operationId: 'stub.records.check', as: 'access' },
  }),
  row({ operationId: 'stub.access.replace', method: 'PUT', path: '/access', scopes: 'authenticated', stepUp: true }),
  row({ operationId: 'stub.open.get', method: 'GET', path: '/open', scopes: 'public' }),
  row({ operationId: 'stub.identity.get', method: 'GET', path: '/who', scopes: 'authenticated' }),
];

type Used = AuthActions['auth.deprecatedUses.add']['params']['uses'][number];

export interface Stage {
  readonly broker: ServiceBroker;
  readonly baseUrl: string;
  readonly config: Config;
  /** Response of the stub; set by tests. */
  answer: (
    call: OperationCall,
    context: RequestContext | undefined,
    meta: Record<string, unknown>,
  ) => Promise<OperationReply> | OperationReply;
  /** The agent service's decision about a call under a run. */
  admit: (admission: Admission, context: RequestContext | undefined) => Admitted | Promise<Admitted>;
  /** How agent answers when it is to ask people. */
  asked: () => PlatformError;
  /** Later notifications to the agent service: action and parameters. */
  readonly told: [action: string, params: Record<string, unknown>][];
  /** The record that data has. */
  record: () => OperationReply;
  authAnswer: (request: HttpRequest) => Promise<HttpReply> | HttpReply;
  grant: Partial<GrantState>;
  apiEnabled: boolean;
  /** System permissions of the user. */
  permissions: string[];
  origins: string[];
  /** Use of deprecated operations that auth was told of. */
  readonly used: Used[];
  /** Calls the stub of auth has got, by action. */
  readonly calls: Record<string, number>;
  token(
    more?: Record<string, unknown>,
    options?: {
      type?: string;
      expiresIn?: number;
      kid?: string;
      key?: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
    },
  ): Promise<string>;
  send(method: string, path: string, options?: SendOptions): Promise<Answer>;
  raw(text: string): Promise<string>;
  rotateKeys(): Promise<void>;
  stop(): Promise<void>;
}

export async function startStage(
  env: Record<string, string> = {},
  options: { ratelimit?: boolean; agent?: boolean; operations?: readonly Operation[] } = {},
): Promise<Stage> {
  const config = readConfig({ PORT: '0', HOST: '127.0.0.1', LOG_LEVEL: 'silent', ...env });
  const broker = new ServiceBroker({
    ...brokerOptions(config),
    ...(config.bus ? { transporter: natsBus(config, OPEN_POLICY), middlewares: [peerCheck()] } : {}),
    logger: false,
  });
  const database = {
    query: async () => ({ rows: [], rowCount: 0 }),
    answers: async () => true,
    login: async () => ({ bytes: 8192 }),
    pool: { totalCount: 0, idleCount: 0 },
    queue: new ConnectionQueue({ size: 1, perTenant: 1 }),
    heldMs: 0,
    degraded: [],
    failures: new Map(),
  };
  const doorless = database as unknown as Database;
  const jobs = new Jobs(doorless, { warn: () => {} });
  const databases = new Map([['gateway', doorless]]);
  const platform = {
    service: 'gateway' as const,
    broker,
    log: broker.logger,
    config,
    database: doorless,
    databases,
    timekeeper: { agrees: true },
    outbound: () => Promise.reject(new Error('Nothing leaves the stage.')),
    jobs,
    blobs: await openBlobs(config),
    metrics: new Metrics(),
  };
  let keys = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  let kid = 'key-1';
  let published = [{ ...(await exportJWK(keys.publicKey)), kid, alg: 'EdDSA', use: 'sig' }];
  const calls: Record<string, number> = {};
  const told: Stage['told'] = [];
  const count = (name: string): void => {
    calls[name] = (calls[name] ?? 0) + 1;
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });

  broker.createService({
    name: 'auth',
    actions: {
      'keys.list'() {
        count('keys.list');
        return { keys: published };
      },
      'grants.check'(ctx: { params: { grants: { grantId: string }[] } }) {
        count('grants.check');
        return ctx.params.grants.map(
          ({ grantId }): GrantState => ({
            grantId,
            active: true,
            tenantSuspended: false,
            clientActive: true,
            clientName: 'Test client',
            agent: false,
            stepUp: false,
            ipRanges: [],
            rateLimits: {
              client: { connection: null, concurrency: null },
              tenant: { connection: null, tenant: null, daily: null, concurrency: null },
            },
            ...stage.grant,
          }),
        );
      },
      'deprecatedUses.add'(ctx: { params: { uses: Used[] } }) {
        stage.used.push(...ctx.params.uses);
        return null;
      },
      'deprecatedUses.list'(ctx: { params: { tenantId: string; operationIds: string[] } }) {
        const { tenantId, operationIds } = ctx.params;
        const isAsked = (use: Used): boolean => use.tenantId === tenantId && operationIds.includes(use.operationId);
        return { uses: stage.used.filter(isAsked).map((use) => ({ ...use, clientName: 'Test client' })) };
      },
      'origins.check'(ctx: { params: { origin: string } }) {
        count('origins.check');
        return { allowed: stage.origins.includes(ctx.params.origin) };
      },
      'http.handle'(ctx: { params: HttpRequest }) {
        return stage.authAnswer(ctx.params);
      },
    },
  });
  broker.createService({
    name: 'data',
    actions: {
      'users.get'() {
        count('users.get');
        const { apiEnabled, permissions } = stage;
        return { id: USER, active: true, apiEnabled, systemPermissions: permissions };
      },
      'records.get': () => stage.record(),
    },
  });
  const tell = (action: string) => (ctx: { params: Record<string, unknown> }) => {
    told.push([action, ctx.params]);
    return null;
  };
  if (options.agent !== false)
    broker.createService({
      name: 'agent',
      actions: {
        'runs.admit'(ctx: { params: Admission; meta: { request?: RequestContext } }) {
          count('runs.admit');
          return stage.admit(ctx.params, ctx.meta.request);
        },
        'steps.settle': tell('settle'),
        'approvals.request'(ctx: { params: Record<string, unknown> }) {
          told.push(['request', ctx.params]);
          throw stage.asked();
        },
      },
    });
  broker.createService({ name: 'metadata', actions: {} });
  broker.createService({ name: 'analytics', actions: {} });
  broker.createService({
    name: 'stub',
    actions: {
      answer(ctx: { params: OperationCall; meta: { request?: RequestContext } }) {
        return stage.answer(ctx.params, ctx.meta.request, ctx.meta as Record<string, unknown>);
      },
    },
  });
  if (options.ratelimit !== false) broker.createService(ratelimitService(platform));
  broker.createService(
    gatewayService(platform, [
      ...OPERATIONS.filter((one) => /^(schema\.(openapi|scopes|cap|dep)|me\.limits)/.test(one.operationId)),
      ...STUB_OPERATIONS,
      ...(options.operations ?? []),
    ]),
  );
  await broker.start();
  const baseUrl = (broker.getLocalService('gateway') as unknown as { baseUrl: string }).baseUrl;
  const port = Number(new URL(baseUrl).port);

  const stage: Stage = {
    broker,
    baseUrl,
    config,
    answer: () => ({ body: {} }),
    admit: () => ({ stepId: uuidv7(), dryRun: false, approvalId: null, approvalRequired: false, asks: false }),
    asked: () => new PlatformError('APPROVAL_REQUIRED', 'Somebody has to approve this.'),
    told,
    record: () => ({ body: Buffer.from('{}') }),
    authAnswer: () => ({ status: 200, headers: {}, body: Buffer.from('') }),
    grant: {},
    apiEnabled: true,
    permissions: [],
    origins: [],
    used: [],
    calls,
    token(more = {}, { type = 'at+jwt', expiresIn = 3600, kid: named = kid, key = keys.privateKey } = {}) {
      const now = Math.floor(Date.now() / 1_000);
      return new SignJWT({
        client_id: CLIENT,
        tenant_id: TENANT,
        grant_id: 'grant-1',
        scope: 'data:read data:write data:delete',
        jti: uuidv7(),
        iss: baseUrl,
        sub: USER,
        aud: `${baseUrl}/api/v1`,
        iat: now,
        exp: now + expiresIn,
        ...more,
      })
        .setProtectedHeader({ alg: 'EdDSA', typ: type, kid: named })
        .sign(key);
    },
    async send(method, path, { token, headers = {}, body } = {}) {
      const bearer = token === null ? {} : { authorization: `Bearer ${token ?? (await defaultToken())}` };
      const payload =
        body === undefined
          ? undefined
          : Buffer.isBuffer(body)
            ? body
            : typeof body === 'string'
              ? body
              : JSON.stringify(body);
      const type = payload === undefined || 'content-type' in headers ? {} : { 'content-type': 'application/json' };
      return new Promise((resolve, reject) => {
        const req = httpRequest(
          {
            port,
            host: '127.0.0.1',
            method,
            path: path.startsWith('//') ? path.slice(1) : `/api/v1${path}`,
            agent,
            headers: { ...bearer, ...type, ...headers },
          },
          (res) => {
            const chunks: Buffer[] = [];
            res.on('data', (chunk) => chunks.push(chunk));
            res.on('end', () => {
              const bytes = Buffer.concat(chunks);
              const text = bytes.toString('utf8');
              let json: unknown;
              try {
                json = JSON.parse(text);
              } catch {
                json = undefined;
              }
              resolve({ status: res.statusCode!, headers: res.headers, body: bytes, text, json });
            });
            res.on('error', reject);
          },
        );
        req.on('error', reject);
        req.end(payload);
      });
    },
    raw(text) {
      return new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(text));
        let received = '';
        socket.on('data', (chunk) => {
          received += chunk.toString('latin1');
        });
        socket.on('close', () => resolve(received));
        socket.on('error', reject);
      });
    },
    async rotateKeys() {
      keys = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
      kid = `key-${published.length + 1}`;
      published = [...published, { ...(await exportJWK(keys.publicKey)), kid, alg: 'EdDSA', use: 'sig' }];
    },
    async stop() {
      agent.destroy();
      await broker.stop();
    },
  };
  let remembered: string | undefined;
  const defaultToken = async (): Promise<string> => (remembered ??= await stage.token());
  return stage;
}
