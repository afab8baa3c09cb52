/**
 * auth alone on real PostgreSQL: its service in a broker of its own, metadata and data replaced by hand-made tenants,
 * and a bare HTTP server that passes requests on as the gateway does.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Context, Errors, Loggers, ServiceBroker, type ServiceSchema } from 'moleculer';
import { brokerOptions } from '../../../config/broker.ts';
import { readConfig } from '../../../config/env.ts';
import type { HttpReply } from '../../../contracts/auth.ts';
import { call } from '../../../contracts/call.ts';
import type { DataActions } from '../../../contracts/data.ts';
import type {
  ExternalClientMeta,
  IdentityProviderMeta,
  SecondFactorPolicy,
  Snapshot,
} from '../../../lib/schema/snapshot.ts';
import { CountedBlobs } from '../../../mixins/blobs/counted.ts';
import { FolderBlobs } from '../../../mixins/blobs/folder.ts';
import { Database } from '../../../mixins/database/database.ts';
import { ensureLogins } from '../../../mixins/database/logins.ts';
import { ensureServiceRole, migrate } from '../../../mixins/database/migrate.ts';
import { Jobs } from '../../../mixins/jobs/jobs.ts';
import { Metrics } from '../../../mixins/metrics/metrics.ts';
import { type GuardedFetch, guardedFetch } from '../../../mixins/outbound.ts';
import authService from '../../../services/auth/auth.service.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { folderOfMails, linkIn, type Mailbox } from '../../support/mail.ts';
import { testEnvironment } from '../../support/platform.ts';

export const DEMO = '01990000-0000-7000-8000-000000000001';
export const ACME = '01990000-0000-7000-8000-000000000002';
export const SAM = '01990000-0000-7000-8000-0000000000a1';
export const ADA = '01990000-0000-7000-8000-0000000000a2';
export const EVE = '01990000-0000-7000-8000-0000000000b1';
export const PASSWORD = 'demo-password';

/** Waits after failures are 40 times as long, up to their maximum: a test may take longer than one second to fail again. */
const LONGER_WAITS = `
  CREATE OR REPLACE FUNCTION public.longer_waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.blocked_until := clock_timestamp() + least((NEW.blocked_until - clock_timestamp()) * 40,
      CASE split_part(NEW.key, ' ', 1) WHEN 'tenant' THEN interval '5 s' WHEN 'address' THEN interval '1 min' ELSE '5 min' END);
    RETURN NEW;
  END $$;
  CREATE OR REPLACE TRIGGER longer_waits BEFORE UPDATE ON auth.attempts FOR EACH ROW
    WHEN (NEW.failures > OLD.failures AND NEW.blocked_until > clock_timestamp()) EXECUTE FUNCTION public.longer_waits()`;

export function externalClient(meta: Partial<ExternalClientMeta> & { apiName: string }): ExternalClientMeta {
  return {
    clientId: `demo-${meta.apiName}`,
    name: meta.apiName,
    redirectUris: [],
    scopes: [],
    grantTypes: ['authorization_code', 'refresh_token'],
    confidential: false,
    agent: false,
    active: true,
    ipRanges: [],
    origins: [],
    accessTokenSeconds: null,
    rateLimits: { connection: null, tenant: null, daily: null, concurrency: null },
    integrationUser: null,
    ...meta,
  };
}

export interface AuthHarness {
  baseUrl: string;
  broker: ServiceBroker;
  database: Database;
  url: string;
  /** Clients of the tenant `demo`; change and bump(). */
  clients: Record<string, ExternalClientMeta>;
  /** Identity providers by tenant; set and bump(). */
  identityProviders: Map<string, IdentityProviderMeta[]>;
  /** System permissions of users who differ from those of the demo tenant. */
  permissions: Map<string, string[]>;
  suspended: Set<string>;
  /** Second-factor settings by tenant; set and bump(). */
  secondFactor: Map<string, SecondFactorPolicy>;
  /** True: metadata fails as an unavailable service does. */
  metadataAway: boolean;
  /** True: data accepts no entries of audit trails. */
  dataAway: boolean;
  bump(tenantId?: string): Promise<void>;
  /** Grant ids that were broadcast as revoked. */
  revoked: string[];
  /** Announced changes of passkeys and second factors. */
  factorChanges: { tenantId: string; userId: string; actorId: string | null; event: string }[];
  /** Refused sign-ins that were reported for the audit trail. */
  refusals: DataActions['data.audit.denySignIn']['params'][];
  /** Completed acts that were reported for the audit trail. */
  notes: DataActions['data.audit.note']['params'][];
  /** Users that auth asked data to create. */
  provisioned: DataActions['data.users.provision']['params']['users'];
  /** Lines of the log, of warnings and worse. */
  warnings: string[];
  /** Mails sent to users. */
  mails: Mailbox;
  /** Lines of the log. */
  log: string[];
  /** Resolves with the link of the next mail to this address. */
  linkTo(address: string): Promise<string>;
  stop(): Promise<void>;
}

const tenant = (id: string, key: string, version: number, suspended: boolean) => ({
  id,
  key,
  name: key,
  region: 'local',
  edition: 'standard',
  sandbox: false,
  locale: 'en',
  timezone: 'Europe/Berlin',
  currency: 'EUR',
  rateLimits: { connection: null, tenant: null, daily: null, concurrency: null },
  suspended,
  metadataVersion: version,
});

/** Stores the log, to search it for secrets. */
class LogReader extends Loggers.Base<object> {
  readonly #lines: string[];
  readonly #warnings: string[];

  constructor(lines: string[], warnings: string[]) {
    super();
    this.#lines = lines;
    this.#warnings = warnings;
  }

  override getLogHandler(): (type: string, args: unknown[]) => void {
    return (type, args) => {
      const line = args.map((arg) => (typeof arg === 'string' ? arg : JSON.stringify(arg))).join(' ');
      this.#lines.push(line);
      if (type === 'warn' || type === 'error' || type === 'fatal') this.#warnings.push(line);
      if (process.env['LOG_LEVEL']) console.error(line);
    };
  }
}

interface HarnessOptions {
  env?: Record<string, string>;
  /** The database to use, created by the caller. */
  databaseUrl?: string;
  /** Stands in for the internet. */
  outbound?: GuardedFetch;
  /** Another node on the same database. */
  on?: AuthHarness;
}

export async function startAuth(options: HarnessOptions = {}): Promise<AuthHarness> {
  let own: TestDatabase | null = null;
  const url = options.on?.url ?? options.databaseUrl ?? (own = await createDatabase()).url;
  const dataDir = await mkdtemp(join(tmpdir(), 'erp-test-auth-'));
  const config = readConfig(testEnvironment(url, { DATA_DIR: dataDir, ...options.env }));
  const mails = folderOfMails(dataDir);
  const database = new Database(url, { size: 5, applicationName: 'auth test' });
  await migrate(database, 'auth', fileURLToPath(new URL('../../../services/auth/migrations', import.meta.url)));
  await ensureServiceRole(database, 'auth');
  await ensureLogins(database, ['auth']);
  await database.query(LONGER_WAITS);

  const clients: Record<string, ExternalClientMeta> = options.on?.clients ?? {};
  const suspended = options.on?.suspended ?? new Set<string>();
  const secondFactor = options.on?.secondFactor ?? new Map<string, SecondFactorPolicy>();
  const identityProviders = options.on?.identityProviders ?? new Map<string, IdentityProviderMeta[]>();
  const permissions = options.on?.permissions ?? new Map<string, string[]>();
  const harness = {} as AuthHarness;
  const revoked: string[] = [];
  const factorChanges: AuthHarness['factorChanges'] = [];
  const notes: AuthHarness['notes'] = [];
  const warnings: string[] = [];
  const log: string[] = [];
  let version = 1;
  const tenants = () => [
    tenant(DEMO, 'demo', version, suspended.has(DEMO)),
    tenant(ACME, 'acme', version, suspended.has(ACME)),
  ];

  const broker = new ServiceBroker({
    ...brokerOptions(config),
    nodeID: `auth-test-${randomUUID()}`,
    logLevel: 'info',
    logger: new LogReader(log, warnings),
  } as never);
  const jobs = new Jobs(database, { warn: () => {} });
  broker.createService(
    await authService({
      broker,
      log: broker.getLogger('auth', { svc: 'auth' }),
      service: 'auth',
      config,
      database,
      databases: new Map([['auth', database]]),
      timekeeper: { agrees: true },
      jobs,
      blobs: new CountedBlobs(new FolderBlobs(config.dataDir)),
      metrics: new Metrics(),
      outbound: options.outbound ?? guardedFetch(config.ssoPrivateHosts),
    }),
  );
  broker.createService({
    name: 'metadata',
    actions: {
      'tenants.get': (ctx: Context<{ tenantId?: string; key?: string }>) => {
        if (harness.metadataAway) throw new Errors.ServiceNotAvailableError({ action: 'metadata.tenants.get' });
        return tenants().find(({ id, key }) => id === ctx.params.tenantId || key === ctx.params.key) ?? null;
      },
      'tenants.list': () => tenants(),
      'snapshots.get': (ctx: Context<{ tenantId: string; version: number }>) => ({
        version: ctx.params.version,
        snapshot: Buffer.from(
          JSON.stringify({
            externalClients: ctx.params.tenantId === DEMO ? clients : {},
            secondFactor: secondFactor.get(ctx.params.tenantId) ?? null,
            identityProviders: Object.fromEntries(
              (identityProviders.get(ctx.params.tenantId) ?? []).map((meta) => [meta.apiName, meta]),
            ),
          } satisfies Partial<Snapshot>),
        ),
      }),
    },
  } as ServiceSchema);
  broker.createService({
    name: 'data',
    actions: {
      'audit.note': (ctx: Context<AuthHarness['notes'][number]>) => {
        if (harness.dataAway) throw new Errors.ServiceNotAvailableError({ action: 'data.audit.note' });
        notes.push(ctx.params);
        const { tenantId, userId, actorId = null, operationId } = ctx.params;
        const event = /^auth\.factors\.(\w+)$/.exec(operationId)?.[1];
        if (event && userId !== null) factorChanges.push({ tenantId, userId, actorId, event });
        return null;
      },
      'audit.denySignIn': (ctx: Context<AuthHarness['refusals'][number]>) => {
        harness.refusals.push(ctx.params);
        return null;
      },
      'users.get': (ctx: Context<{ userId: string }>) => ({
        id: ctx.params.userId,
        username: 'sam@demo.example',
        displayName: 'Sam Keller',
        email: 'sam@demo.example',
        active: true,
        locale: 'de',
        timezone: 'Europe/Berlin',
        profileApiName: 'SalesRep',
        roleApiName: 'SalesRep',
        apiEnabled: true,
        updatedAt: 1_767_225_600,
        systemPermissions:
          permissions.get(ctx.params.userId) ??
          (ctx.params.userId === ADA ? ['apiEnabled', 'manageUsers'] : ['apiEnabled']),
      }),
      'users.find': () => null,
      'users.provision': async (ctx: Context<DataActions['data.users.provision']['params']>) => {
        const { tenantId, users } = ctx.params;
        harness.provisioned.push(...users);
        const synced = users.map(({ username, email, invite }) => ({
          userId: randomUUID(),
          username,
          email,
          active: true,
          ...(invite === undefined ? {} : { invite }),
        }));
        const { signInNames } = await call(ctx, 'auth.users.sync', { tenantId, users: synced });
        return { userIds: Object.fromEntries(synced.map((user) => [user.username, user.userId])), signInNames };
      },
    },
  } as ServiceSchema);
  broker.createService({
    name: 'listener',
    events: {
      'auth.grants.revoked': (ctx: Context<{ grantIds: string[] }>) => void revoked.push(...ctx.params.grantIds),
    },
  } as ServiceSchema);
  await broker.start();

  let baseUrl = '';
  const server: Server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      call(broker, 'auth.http.handle', {
        method: req.method!,
        url: req.url!,
        headers: { ...(req.headers as Record<string, string | string[]>), 'x-platform-base-url': baseUrl },
        body: chunks.length ? Buffer.concat(chunks) : null,
        remoteAddress: String(req.headers['x-test-address'] ?? req.socket.remoteAddress),
      }).then(
        ({ status, headers, body }: HttpReply) => res.writeHead(status, headers).end(body),
        (error) => res.writeHead(500).end(String(error?.stack ?? error)),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  if (!options.on) {
    const user = (userId: string, username: string) => ({
      userId,
      username,
      email: username,
      active: true,
      password: PASSWORD,
    });
    await call(broker, 'auth.domains.add', { tenantId: DEMO, domain: 'demo.example' });
    await call(broker, 'auth.domains.add', { tenantId: ACME, domain: 'acme.example' });
    await call(broker, 'auth.users.sync', {
      tenantId: DEMO,
      users: [user(SAM, 'sam@demo.example'), user(ADA, 'ada@demo.example')],
    });
    await call(broker, 'auth.users.sync', { tenantId: ACME, users: [user(EVE, 'eve@acme.example')] });
  }

  Object.assign(harness, {
    baseUrl,
    broker,
    database,
    url,
    clients,
    identityProviders,
    permissions,
    provisioned: [],
    warnings,
    suspended,
    secondFactor,
    metadataAway: false,
    dataAway: false,
    revoked,
    factorChanges,
    refusals: [],
    notes,
    mails,
    log,
    async linkTo(address) {
      return linkIn(await mails.next({ to: address }));
    },
    async bump(tenantId = DEMO) {
      version++;
      await broker.broadcast('metadata.schema.changed', { tenantId, metadataVersion: version });
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await broker.stop();
      await database.close();
      await own?.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  } satisfies AuthHarness);
  return harness;
}
