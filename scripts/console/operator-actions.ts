/**
 * Actions that operators may call, with parameters and an example: the console lists them and refuses others. The
 * types hold it to contracts/, where a missing parameter or one too many does not compile; a test holds the list to
 * contracts/bus.ts.
 */
import type { OperatorAction } from '../../contracts/bus.ts';
import type { ActionMap } from '../../contracts/call.ts';

/** Type of a value; `text[]` is a list of texts. */
export type Kind = 'text' | 'number' | 'boolean' | 'text[]' | 'object' | 'object[]';

interface Parameter {
  readonly kind: Kind;
  readonly required: boolean;
  readonly what: string;
}

export interface OperatorActionHelp {
  readonly does: string;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly example: Readonly<Record<string, unknown>>;
}

type Names<P> = P extends unknown ? keyof P & string : never;
type IsRequired<P, K extends string> = P extends unknown
  ? K extends keyof P
    ? Record<never, never> extends Pick<P, K>
      ? false
      : true
    : false
  : never;
type ParametersOf<P> = {
  readonly [K in Names<P>]: Omit<Parameter, 'required'> & { readonly required: IsRequired<P, K> };
};
type Table = {
  readonly [A in OperatorAction]: {
    readonly does: string;
    readonly parameters: string extends Names<ActionMap[A]['params']>
      ? Record<never, never>
      : ParametersOf<ActionMap[A]['params']>;
    readonly example: ActionMap[A]['params'];
  };
};

const text = (what: string) => ({ kind: 'text', required: true, what }) as const;
const optional = <K extends Kind>(kind: K, what: string) => ({ kind, required: false, what }) as const;

const TENANT = 'lakeside';
const tenantId = text('key or id of the tenant, as `tenant list` shows them');
const key = text('key of the tenant, such as lakeside');
const username = text('name of the user, such as joan@lakeside.example');
const oneOfSeveral = optional('text', 'key or id of the tenant, when several have a user of this name');
const after = optional('text', 'id of the last one of the page before');
const take = (most: string) => optional('number', `how many at most; ${most}`);

const TABLE: Table = {
  'agent.tenants.listRuns': {
    does: 'The active runs of agents in a tenant.',
    parameters: { tenantId },
    example: { tenantId: TENANT },
  },
  'agent.tenants.cancelRuns': {
    does: 'Ends runs of agents in a tenant: those that are named, or all.',
    parameters: { tenantId, runIds: optional('text[]', 'ids of runs; without them all that are active') },
    example: { tenantId: TENANT },
  },
  'auth.keys.rotate': {
    does: 'A new signing key; the one before is still good for the tokens that it has signed.',
    parameters: {},
    example: {},
  },
  'auth.clients.rotateSecret': {
    does: 'A new secret of an external client, shown this once; the old one ends at once.',
    parameters: { tenantId, apiName: text('apiName of the client') },
    example: { tenantId: TENANT, apiName: 'Warehouse' },
  },
  'auth.users.createLink': {
    does: 'A single-use link with which a user sets a new password.',
    parameters: { username, tenantId: oneOfSeveral },
    example: { username: 'joan@lakeside.example' },
  },
  'auth.domains.add': {
    does: 'A mail domain that the tenant has proved to own: a username in it means a user of this tenant alone.',
    parameters: { tenantId, domain: text('such as lakeside.example') },
    example: { tenantId: TENANT, domain: 'lakeside.example' },
  },
  'auth.domains.check': {
    does: 'Refuses, with reasons, mail domains that a tenant cannot have; null: it can. The tenant need not be there yet.',
    parameters: { key, domains: { kind: 'text[]', required: true, what: 'such as ["lakeside.example"]' } },
    example: { key: 'lakeside', domains: ['lakeside.example'] },
  },
  'auth.domains.remove': {
    does: 'Takes a mail domain from the tenant: its users sign in as key\\name afterwards.',
    parameters: { tenantId, domain: text('such as lakeside.example') },
    example: { tenantId: TENANT, domain: 'lakeside.example' },
  },
  'auth.domains.list': {
    does: 'The mail domains of a tenant.',
    parameters: { tenantId },
    example: { tenantId: TENANT },
  },
  'auth.identityProviders.check': {
    does: 'What an identity provider of a tenant lacks, and whether it answers at this moment.',
    parameters: { tenantId, apiName: text('apiName of the provider') },
    example: { tenantId: TENANT, apiName: 'CompanyLogin' },
  },
  'auth.identityProviders.setSecret': {
    does: 'The secret by which an identity provider knows the platform; kept sealed, and never shown.',
    parameters: { tenantId, apiName: text('apiName of the provider'), secret: text('as the provider gave it') },
    example: { tenantId: TENANT, apiName: 'CompanyLogin', secret: '…' },
  },
  'auth.identities.remove': {
    does: 'Forgets who a user is at identity providers and ends all sessions, for a new identity there.',
    parameters: { username, tenantId: oneOfSeveral },
    example: { username: 'joan@lakeside.example' },
  },
  'auth.users.revoke': {
    does: 'Ends all sessions and connections of a user at once.',
    parameters: { tenantId, userId: text('id of the User record') },
    example: { tenantId: TENANT, userId: '0193c0de-0000-7000-8000-00000000b001' },
  },
  'auth.factors.reset': {
    does: 'Removes passkeys, authenticator app and recovery codes of a user who has lost them, and ends all sessions.',
    parameters: { username, tenantId: oneOfSeveral },
    example: { username: 'joan@lakeside.example' },
  },
  'auth.secrets.reseal': {
    does: 'Seals everything stored with the present PLATFORM_SECRET; `npm run rotate-secret` does it as well.',
    parameters: {},
    example: {},
  },
  'data.users.get': {
    does: 'A user with state, permissions and profile; null when there is none.',
    parameters: { tenantId, userId: text('id of the User record') },
    example: { tenantId: TENANT, userId: '0193c0de-0000-7000-8000-00000000b001' },
  },
  'data.users.find': {
    does: 'The same by name.',
    parameters: { tenantId, username },
    example: { tenantId: TENANT, username: 'joan@lakeside.example' },
  },
  'data.users.provision': {
    does: 'Makes users of a tenant, or finishes what was interrupted. A user who is there stays as they are.',
    parameters: {
      tenantId,
      users: {
        kind: 'object[]',
        required: true,
        what: 'each with username, email, displayName and profileApiName; roleApiName, permissionSetApiNames, managerUsername, password where wanted',
      },
    },
    example: {
      tenantId: TENANT,
      users: [
        {
          username: 'joan@lakeside.example',
          email: 'joan@lakeside.example',
          displayName: 'Joan Hale',
          profileApiName: 'Administrator',
        },
      ],
    },
  },
  'data.audit.seal': {
    does: 'Chains the new entries of a tenant’s audit trail now, without waiting for the job.',
    parameters: { tenantId },
    example: { tenantId: TENANT },
  },
  'data.audit.verify': {
    does: 'Checks one part of a tenant’s audit trail; `next` of the answer is `from` of the next part.',
    parameters: {
      tenantId,
      from: optional('object', '`next` of the answer before'),
      expect: optional('object', 'position and hash that were noted down: the chain must have them'),
    },
    example: { tenantId: TENANT },
  },
  'metadata.tenants.get': {
    does: 'A tenant by id or key; null when there is none.',
    parameters: { tenantId: optional('text', 'its id'), key: optional('text', 'or its key') },
    example: { key: 'lakeside' },
  },
  'metadata.tenants.list': {
    does: 'The tenants in the order of their ids.',
    parameters: { after, take: take('100 unless said, up to 1000') },
    example: {},
  },
  'metadata.tenants.create': {
    does: 'Makes a tenant, or finishes what was interrupted; `tenant create` makes its administrator as well.',
    parameters: {
      key: text('short name for addresses and sign-in, for good'),
      name: text('name of the company'),
      template: optional('text', 'erp (unless said) or empty'),
      region: optional('text', 'where its data lies; only that of this installation'),
      edition: optional('text', 'label of your own'),
      sandbox: optional('boolean', 'a place to try things out'),
      locale: optional('text', 'such as en or de'),
      timezone: optional('text', 'such as Europe/London'),
      currency: optional('text', 'such as GBP'),
    },
    example: { key: 'lakeside', name: 'Lakeside Bakery Ltd', timezone: 'Europe/London', currency: 'GBP' },
  },
  'metadata.tenants.describe': {
    does: 'What a tenant, or each of them, is and how it stands.',
    parameters: { key: optional('text', 'of one tenant'), after, take: take('100 unless said') },
    example: { key: 'lakeside' },
  },
  'metadata.tenants.suspend': {
    does: 'Ends all work in the tenant within seconds. Its data is kept.',
    parameters: { key, reason: text('for its audit trail') },
    example: { key: 'lakeside', reason: 'The contract has ended.' },
  },
  'metadata.tenants.resume': {
    does: 'Takes a suspension back.',
    parameters: { key },
    example: { key: 'lakeside' },
  },
  'metadata.tenants.rename': {
    does: 'Another name; the key is for good.',
    parameters: { key, name: text('the new name') },
    example: { key: 'lakeside', name: 'Lakeside Bakeries Ltd' },
  },
  'metadata.tenants.delete': {
    does: 'Suspends the tenant at once, and erases it after a time of grace.',
    parameters: {
      key,
      confirm: text('the key once more'),
      graceDays: optional('number', 'days until then; 30 unless said'),
    },
    example: { key: 'lakeside', confirm: 'lakeside' },
  },
  'metadata.tenants.undelete': {
    does: 'Takes a deletion back, until the erasure begins.',
    parameters: { key },
    example: { key: 'lakeside' },
  },
  'metadata.tenants.listDeletions': {
    does: 'The newest proofs of deletion, of all keys or one.',
    parameters: { key: optional('text', 'of one tenant') },
    example: {},
  },
  'metadata.tenants.findTraces': {
    does: 'Looks once more for what is left of an erased tenant.',
    parameters: { tenantId: text('id of the tenant, as its proof of deletion says it') },
    example: { tenantId: '0193c0de-0000-7000-8000-00000000a001' },
  },
  'metadata.tenants.setLimits': {
    does: 'Limits of a tenant in place of those of the deployment; the command `limits` is shorter.',
    parameters: {
      key,
      limits: { kind: 'object', required: true, what: 'connection, tenant, daily, concurrency; null takes one back' },
      liftOwn: optional('boolean', 'what the tenant’s own settings narrow does not hold until its next deployment'),
    },
    example: { key: 'lakeside', limits: { connection: 6_000 } },
  },
  'metadata.tenants.listLimits': {
    does: 'The tenants with such limits, in the order of their ids.',
    parameters: { after, take: take('100 unless said') },
    example: {},
  },
  'metadata.jobs.listDead': {
    does: 'Jobs of all services whose last attempt failed, the oldest first.',
    parameters: {},
    example: {},
  },
  'metadata.jobs.sendDeadAgain': {
    does: 'Tries the dead jobs of a queue again, as if they were new.',
    parameters: { queue: text('as metadata.jobs.listDead shows it') },
    example: { queue: 'data.userSync' },
  },
  'metadata.tenants.listDeployments': {
    does: 'Deployments that have not ended, the oldest first, of a tenant or of all.',
    parameters: { tenantId: optional('text', 'key or id of one tenant') },
    example: {},
  },
  'metadata.tenants.cancelDeployment': {
    does: 'Ends a deployment, with an entry in the tenant’s audit trail.',
    parameters: {
      tenantId,
      deploymentId: text('as metadata.tenants.listDeployments shows it'),
      reason: optional('text', 'for the audit trail'),
    },
    example: {
      tenantId: TENANT,
      deploymentId: '0193c0de-0000-7000-8000-00000000d001',
      reason: 'It holds up the month end.',
    },
  },
  'metadata.templates.deploy': {
    does: 'Deploys files of configuration as the platform, and waits for the end.',
    parameters: {
      tenantId,
      files: { kind: 'object', required: true, what: 'texts of YAML files by their paths' },
    },
    example: { tenantId: TENANT, files: { 'metadata/objects/Truck.yaml': 'apiName: Truck\n…' } },
  },
};

export const OPERATOR_HELP: ReadonlyMap<string, OperatorActionHelp> = new Map(
  Object.entries(TABLE).map(([action, { example, ...help }]) => [action, { ...help, example: { ...example } }]),
);
