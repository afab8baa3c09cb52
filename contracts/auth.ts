/** Public operations and internal actions of auth. */

import { type Static, Type } from 'typebox';
import type { Severity } from '../lib/notice.ts';
import { type ActionsOf, defineOperation, nullable, type Scope } from '../lib/operation.ts';
import type { RateLimitOverrides } from '../lib/schema/snapshot.ts';
import { USER_PROPERTIES } from './data/me.ts';
import { cursor, effectiveTake, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { AUTH_GUIDANCE } from './guidance/auth.ts';

export interface HttpRequest {
  method: string;
  /** Path and query as received, such as `/oauth2/token`. */
  url: string;
  headers: Record<string, string | string[]>;
  body: Buffer | null;
  remoteAddress: string;
}

export interface HttpReply {
  status: number;
  headers: Record<string, string | string[]>;
  body: Buffer;
}

/** First words of the paths that auth answers. */
export const AUTH_ROOTS: readonly string[] = ['oauth2', '.well-known', 'device', 'password', 'account'];

/** The client that every tenant has: public, for command lines. */
export const CLI_CLIENT_ID = 'erp-cli';
/** The account page, which is no application: it uses the browser's session and gets no token. */
export const ACCOUNT_CLIENT_ID = 'erp-account';

/** A page of the platform that is a public client in the browser, for users of every tenant. */
export interface AppClient {
  readonly clientId: string;
  /** Of the page, and of links to it: a plural. */
  readonly title: string;
  readonly path: string;
  /** Completes the sentence "Sign in to …". */
  readonly purpose: string;
  /** All that the page may do, whoever signs in. Users are not asked for consent. */
  readonly scopes: readonly Scope[];
}

export const WORKSPACE: AppClient = {
  clientId: 'erp-app',
  title: 'Records',
  path: '/app',
  purpose: 'work with your records',
  scopes: [
    'data:read',
    'data:write',
    'data:delete',
    'actions:read',
    'actions:execute',
    'audit:read',
    'notifications:read',
  ],
};
export const DASHBOARDS: AppClient = {
  clientId: 'erp-dashboards',
  title: 'Dashboards',
  path: '/dashboards',
  purpose: 'see your business in charts',
  scopes: ['analytics:read', 'analytics:run', 'notifications:read'],
};
/** A client of its own, since the one that asked cannot decide. */
export const APPROVALS: AppClient = {
  clientId: 'erp-approvals',
  title: 'Approvals',
  path: '/approvals',
  purpose: 'decide about requests of agents',
  // data:read names records, setup:read reads plans of deployments.
  scopes: ['agent:approve', 'data:read', 'notifications:read', 'setup:read'],
};
export const IMPORTS: AppClient = {
  clientId: 'erp-import',
  title: 'Imports',
  path: '/import',
  purpose: 'bring in a spreadsheet',
  // data:read describes objects and shows results.
  scopes: ['bulk:run', 'data:read', 'data:write', 'notifications:read'],
};
export const NOTIFICATIONS: AppClient = {
  clientId: 'erp-notifications',
  title: 'Notifications',
  path: '/notifications',
  purpose: 'read your notifications',
  // me:read and me:write: whether mails come at once or as a digest is a preference of the profile.
  scopes: ['me:read', 'me:write', 'notifications:read', 'notifications:write'],
};
export const WEBHOOKS: AppClient = {
  clientId: 'erp-events',
  title: 'Webhooks',
  path: '/events',
  purpose: 'have events sent to other systems',
  // data:read lists objects, and lets events be sent with values; events:read shows what was sent.
  scopes: ['data:read', 'events:manage', 'events:read', 'notifications:read'],
};
export const ADMINISTRATION: AppClient = {
  clientId: 'erp-admin',
  title: 'Administration',
  path: '/admin',
  purpose: 'see why somebody may or may not open a record',
  // setup:read asks about other users.
  scopes: ['data:read', 'notifications:read', 'setup:read'],
};
/** Each may read notifications: the header shows how many are unread. */
export const APP_CLIENTS: readonly AppClient[] = [
  WORKSPACE,
  DASHBOARDS,
  IMPORTS,
  APPROVALS,
  WEBHOOKS,
  ADMINISTRATION,
  NOTIFICATIONS,
];

/** The API reference, where operations can be tried out: a public client in the browser, where the operator wants it. */
export const REFERENCE_CLIENT_ID = 'erp-api-reference';
/** To look around. */
export const REFERENCE_READ_SCOPES = [
  'data:read',
  'actions:read',
  'analytics:read',
  'setup:read',
  'me:read',
  'audit:read',
] as const satisfies readonly Scope[];
/** Neither what lasts, nor decisions about agents: those belong where a person sees what they decide about. */
export const REFERENCE_SCOPES = [
  ...REFERENCE_READ_SCOPES,
  'data:write',
  'data:delete',
  'actions:execute',
  'analytics:run',
  'agent:run',
  'metadata:deploy',
  'me:write',
] as const satisfies readonly Scope[];
/** How long a sign-in is recent enough for operations with `stepUp`. */
export const STEP_UP_MAX_AGE_SECONDS = 900;
/** A sign-in with two factors, as `acr` says it: the profile of REFEDS, which IANA registers (RFC 6711). */
export const MULTI_FACTOR_ACR = 'https://refeds.org/profile/mfa';

/** Everything the gateway must know about a grant that the access token itself does not say. */
export interface GrantState {
  grantId: string;
  active: boolean;
  tenantSuspended: boolean;
  clientActive: boolean;
  clientName: string;
  agent: boolean;
  /** A person acts, and operations with `stepUp` need a recent sign-in with two factors. */
  stepUp: boolean;
  ipRanges: string[];
  /**
   * Limits that the operator set for the tenant instead of the deployment's defaults, and to what tenant and client narrow
   * them.
   */
  rateLimits: {
    operator?: RateLimitOverrides;
    tenant: RateLimitOverrides;
    client: { connection: number | null; concurrency: number | null };
  };
}

/** Usernames and mail addresses that auth accepts. */
export const SignInText = Type.String({ minLength: 1, maxLength: 512, pattern: '^[^\\0]*$' });
const closed = { additionalProperties: false };

/** User attributes that data passes to auth. */
export const UsersToSync = Type.Object(
  {
    tenantId: Type.String({ format: 'uuid' }),
    users: Type.Array(
      Type.Object(
        {
          userId: Type.String({ format: 'uuid' }),
          username: SignInText,
          email: SignInText,
          active: Type.Boolean(),
          password: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })),
          invite: Type.Optional(Type.Boolean({ description: 'False: no set-password link is made.' })),
        },
        closed,
      ),
      { maxItems: 10_000 },
    ),
    checkOnly: Type.Optional(
      Type.Boolean({ description: 'Changes nothing; only refuses usernames that others have.' }),
    ),
  },
  closed,
);

/** Recorded uses of deprecated operations. */
export const DEPRECATED_USE_DAYS = 30;

/** Requests of one client for one operation, all on one day. */
export interface DeprecatedUse {
  operationId: string;
  clientId: string;
  requests: number;
  /** RFC 3339. */
  lastUsedAt: string;
}

export interface AuthActions extends ActionsOf<typeof AUTH_OPERATIONS> {
  /** Answers an HTTP request for /oauth2/*, /.well-known/*, /device and the sign-in pages. */
  'auth.http.handle': { params: HttpRequest; result: HttpReply };
  /** Public signing keys (JWKS). Rotated keys stay listed until the last token they signed has expired. */
  'auth.keys.list': { params: Record<string, never>; result: { keys: Record<string, unknown>[] } };
  /**
   * For operators: a new signing key now. Tokens given before stay valid until they expire. Answers the public keys.
   */
  'auth.keys.rotate': { params: Record<string, never>; result: { keys: Record<string, unknown>[] } };
  /**
   * For operators: seals what auth stores with the present secret of the deployment, when the previous one or none
   * sealed it. Answers how many entries that were; afterwards nothing stored needs the previous one.
   */
  'auth.secrets.reseal': { params: Record<string, never>; result: { resealed: number } };
  /** Liveness of grants, in the order asked; unknown ids, and grants of another client or user, come back inactive. */
  'auth.grants.check': {
    params: {
      grants: { tenantId: string; grantId: string; clientId: string; userId: string }[];
      /** They are only looked at, and do not count as used. */
      unused?: boolean;
    };
    result: GrantState[];
  };
  /**
   * Grants that ended outside of this service, by their ids: announced to all gateways, unless they are still there.
   */
  'auth.grants.noteEnded': { params: { grantIds: string[] }; result: null };
  /** Browser origins that any active client lists; for CORS preflight, which carries no token. */
  'auth.origins.check': { params: { origin: string; clientId?: string }; result: { allowed: boolean } };
  /**
   * The user whose calendar the link with this token shows; null: there is no such link, or its user may not use the API
   * at this moment.
   */
  'auth.calendarLinks.find': {
    params: { token: string };
    result: { tenantId: string; userId: string; tenantName: string } | null;
  };
  /**
   * For operators: a new secret for an external client that authenticates by secret, answered this once; the old one
   * ends at once. Throws PARAMETER_INVALID when there is no such client.
   */
  'auth.clients.rotateSecret': { params: { tenantId: string; apiName: string }; result: { secret: string } };
  /**
   * Creates or updates the credentials of User records (username, active); idempotent. Without `password` a
   * single-use set-password link is made and sent (development: logged), unless `invite` is false or an identity provider
   * is the only way in. `active: false` ends the user's grants and
   * browser sessions at once. Throws UNIQUE_VALUE_CONFLICT when another user of the tenant has the username, and
   * PARAMETER_INVALID with everything that is wrong with the form.
   */
  'auth.users.sync': {
    params: Static<typeof UsersToSync>;
    /** Sign-in names of the active ones, by username: `tenant\name` where the name alone does not mean them. */
    result: { signInNames: Record<string, string> };
  };
  /**
   * For operators: a mail domain that the tenant has proved to own. A username in it means a user of this tenant alone;
   * `usersElsewhere` of other tenants have one and now sign in as `tenant\name`. Throws PARAMETER_INVALID when another
   * tenant has the domain.
   */
  'auth.domains.add': {
    params: { tenantId: string; domain: string };
    result: { domain: string; usersElsewhere: number };
  };
  /**
   * For operators: before a tenant is made. Throws PARAMETER_INVALID with every domain that the tenant of this key cannot
   * have, because another one has it or it is none.
   */
  'auth.domains.check': { params: { key: string; domains: string[] }; result: null };
  'auth.domains.remove': { params: { tenantId: string; domain: string }; result: { removed: boolean } };
  'auth.domains.list': { params: { tenantId: string }; result: { domains: string[] } };
  /**
   * For operators: the secret by which an identity provider of a tenant knows the platform. It is kept sealed, counts for
   * the present issuer and client id alone, and is never answered. Throws PARAMETER_INVALID when there is no such
   * provider. Source: docs/reference/authentication.md#single-sign-on.
   */
  'auth.identityProviders.setSecret': {
    params: { tenantId: string; apiName: string; secret: string };
    result: { issuer: string; clientId: string };
  };
  /**
   * For operators: what an identity provider of a tenant lacks, and whether it answers at this moment; `redirectUri` is
   * what is registered with it. Throws PARAMETER_INVALID when there is no such provider.
   */
  'auth.identityProviders.check': {
    params: { tenantId: string; apiName: string };
    result: {
      issuer: string;
      clientId: string;
      active: boolean;
      redirectUri: string;
      secretSet: boolean;
      domains: { domain: string; verified: boolean }[];
      /** `reason`: why it cannot be used; null when it can. */
      discovery: {
        ok: boolean;
        reason: string | null;
        authorizationEndpoint: string | null;
        tokenEndpoint: string | null;
      };
    };
  };
  /**
   * For operators: removes a user's links to identity providers and ends all sessions, for a user with a new identity
   * there. The user is named as for `auth.users.createLink`.
   */
  'auth.identities.remove': { params: { username: string; tenantId?: string }; result: { removed: number } };
  /**
   * For operators: a single-use link with which a user sets a new password, answered instead of sent. Throws
   * PARAMETER_INVALID when no active user has the username, or several tenants have one and none is given.
   */
  'auth.users.createLink': {
    params: { username: string; tenantId?: string };
    /** `signInName`: what the user types to sign in. */
    result: { url: string; validSeconds: number; signInName: string };
  };
  /**
   * A link for an administrator to hand over, which counts once its hash is stored (`auth.add_password_link`).
   * `inactive`: auth knows no active user of this id; `noPassword`: the user signs in at an identity provider alone.
   */
  'auth.users.prepareLink': {
    params: { tenantId: string; userId: string };
    /** `tokenHash`: SHA-256 in base64url. */
    result:
      | { url: string; tokenHash: string; validSeconds: number; signInName: string; refused?: undefined }
      | { refused: 'inactive' | 'noPassword' };
  };
  /** Why a user gets no invitation, before anything is sent; null: one may. */
  'auth.users.mayInvite': {
    params: { tenantId: string; userId: string };
    result: { refused: 'inactive' | 'mailsOff' | 'noPassword' | null };
  };
  /**
   * For operators: removes every passkey, the authenticator app and the recovery codes of a user who has lost them, and
   * ends all sessions and grants. Answers what there was. The user is named as for `auth.users.createLink`.
   */
  'auth.factors.reset': {
    params: { username: string; tenantId?: string };
    result: { passkeys: number; authenticator: boolean; recoveryCodes: number };
  };
  /** Counts requests for operations that are going to be gone. */
  'auth.deprecatedUses.add': { params: { uses: (DeprecatedUse & { tenantId: string })[] }; result: null };
  /** The clients of a tenant that have called these operations in the last days, those of the last call first. */
  'auth.deprecatedUses.list': {
    params: { tenantId: string; operationIds: string[] };
    result: { uses: (DeprecatedUse & { clientName: string })[] };
  };
  /**
   * Mails a request of an agent to users who may decide about it, who have an account and an address. Safe to repeat: each
   * gets one mail about a request.
   */
  'auth.mails.askApprovers': {
    params: {
      tenantId: string;
      approvalId: string;
      userIds: string[];
      request: {
        clientId: string;
        agentKey: string;
        /** Display name of the user in whose name the agent asks. */
        inNameOf: string;
        operationId: string;
        summary: string;
        /** RFC 3339. */
        expiresAt: string;
      };
    };
    result: null;
  };
  /** Mails notifications to a user, in one mail with the id `mailId`: sent again it changes nothing. Answers whether it goes. */
  'auth.mails.notify': {
    params: {
      tenantId: string;
      userId: string;
      mailId: string;
      items: readonly { title: string; body: string; severity: Severity; from: string | null }[];
      /** It has what came in this time; null: it has what just came. */
      digest: 'daily' | 'weekly' | null;
      /** Number of further notifications. */
      more: number;
      /** Token of the link by which the user ends such mails, at most 100 letters, digits and hyphens. */
      unsubscribe: string;
    };
    result: 'queued' | 'tooManyMails' | 'noAddress' | 'off' | 'inactive';
  };
  /**
   * Name and address for the mails about events of a user; null: nobody could answer them, or no mails leave. The name is
   * null where it had better not be shown to strangers.
   */
  'auth.mails.organizer': {
    params: { tenantId: string; userId: string };
    result: { address: string; name: string | null } | null;
  };
  /** States of these mails. One that is missing ended some days ago, or was never made. */
  'auth.mails.states': {
    params: { tenantId: string; mailIds: readonly string[] };
    result: Readonly<Record<string, 'waiting' | 'sent' | 'refused' | 'gaveUp' | 'needless'>>;
  };
  /** Ends every grant and browser session of a user, at once. */
  'auth.users.revoke': { params: { tenantId: string; userId: string }; result: { revoked: number } };
}

/** Broadcast events: `auth.grants.revoked` the moment grants end, `auth.keys.rotated` with a new signing key. */
export interface AuthEvents {
  'auth.grants.revoked': { grantIds: string[] };
  'auth.keys.rotated': Record<string, never>;
  /** To one data node: a person signed in at this moment (RFC 3339). The user's record shows it. */
  'auth.user.signedIn': { tenantId: string; userId: string; at: string };
}

const Identity = Type.Object(
  {
    tenant: Type.Object({
      id: Type.String({ format: 'uuid' }),
      name: Type.String(),
      region: Type.String({ description: "Region of the tenant's data." }),
      defaultLocale: Type.String({ description: 'BCP 47 language tag.' }),
      defaultTimezone: Type.String({ description: 'IANA time zone.' }),
      defaultCurrency: Type.String({ description: 'ISO 4217 code.' }),
      edition: Type.String(),
      sandbox: Type.Boolean({ description: 'A place to try things; not the business itself.' }),
    }),
    user: Type.Object(USER_PROPERTIES),
    connection: Type.Object({
      clientId: Type.String(),
      clientName: Type.String(),
      grantId: Type.String({ description: 'The authorization behind the token; it ends when it is revoked.' }),
      scopes: Type.Array(Type.String(), { description: 'Scopes of the token.' }),
      agent: Type.Boolean({ description: 'The client is an AI agent.' }),
      actingFor: nullable(Type.Object({ userId: Type.String({ format: 'uuid' }) })),
      tokenExpiresAt: nullable(Type.String({ format: 'date-time' })),
    }),
    apiVersion: Type.String(),
  },
  { title: 'Identity' },
);

const Connection = Type.Object(
  {
    connectionId: Type.String({ description: 'The authorization that the person gave; `grantId` of the identity.' }),
    clientId: Type.String(),
    clientName: Type.String({ description: 'The client id where the application does not exist any more.' }),
    scopes: Type.Array(Type.String(), { description: 'Scopes that the user allowed.' }),
    createdAt: Type.String({ format: 'date-time' }),
    lastUsedAt: nullable(Type.String({ format: 'date-time', description: 'To the minute; null: not used yet.' })),
    agent: Type.Boolean({ description: 'The application is an AI agent.' }),
    current: Type.Boolean({ description: 'The connection that makes this request.' }),
  },
  { title: 'ClientConnection' },
);

export const AUTH_OPERATIONS = [
  defineOperation({
    operationId: 'me.identity.get',
    method: 'GET',
    path: '/identity',
    tag: 'me',
    summary: 'Get the identity behind the token',
    description: 'Tenant, user and connection of the access token. Needs no scope.',
    scopes: 'authenticated',
    apiPermission: false,
    runs: 'outside',
    response: {
      status: 200,
      description: 'Tenant, user and connection of the token.',
      schema: Identity,
      example: {
        tenant: {
          id: '0193d3a7-0c5e-7d10-a5b1-8f0f2f1c9e11',
          name: 'Northwind Office GmbH',
          region: 'eu-central',
          defaultLocale: 'en',
          defaultTimezone: 'Europe/Berlin',
          defaultCurrency: 'EUR',
          edition: 'standard',
          sandbox: false,
        },
        user: {
          id: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
          username: 'sam@demo.example',
          displayName: 'Sam Keller',
          email: 'sam@demo.example',
          locale: 'en',
          timezone: 'Europe/Berlin',
          profileApiName: 'SalesRep',
          roleApiName: 'SalesRep',
          active: true,
          apiEnabled: true,
        },
        connection: {
          clientId: CLI_CLIENT_ID,
          clientName: 'ERP command line',
          grantId: 'q7dhHYldwRX5KJEs_VEKsne-u1Wclg0D8q9zz2YqKzt',
          scopes: ['data:read', 'data:write'],
          agent: false,
          actingFor: null,
          tokenExpiresAt: '2026-11-21T01:01:22+00:00',
        },
        apiVersion: '1.0.0',
      },
    },
    errors: [],
    action: 'auth.identity.get',
  }),
  defineOperation({
    operationId: 'me.connections.list',
    method: 'GET',
    path: '/me/connections',
    tag: 'me',
    summary: 'List what acts in your name',
    description:
      'The applications that the user has signed in to, newest first: each authorization is a connection of its own. Browser sessions are none.',
    scopes: ['me:read'],
    queryParameters: [take, cursor],
    response: {
      status: 200,
      description: 'A page of connections.',
      schema: Type.Object({ records: Type.Array(Connection), nextCursor }, { title: 'ClientConnectionPage' }),
      headers: effectiveTake,
      example: {
        records: [
          {
            connectionId: 'q7dhHYldwRX5KJEs_VEKsne-u1Wclg0D8q9zz2YqKzt',
            clientId: CLI_CLIENT_ID,
            clientName: 'ERP command line',
            scopes: ['data:read', 'data:write', 'me:read'],
            createdAt: '2026-11-20T08:14:03.120+00:00',
            lastUsedAt: '2026-11-21T00:01:22.123+00:00',
            agent: false,
            current: true,
          },
        ],
        nextCursor: null,
      },
    },
    errors: ['CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'],
    action: 'auth.connections.list',
  }),
] as const;

export const SERVICE = {
  purpose: 'Sign-in and tokens. It needs its processors for password hashing.',
  listens: 'health',
  awaitedByGateway: true,
  sendsMail: true,
  kubernetes: {
    replicas: { min: 2, max: 6 },
    connections: 6,
    requests: { cpu: '250m', memory: '256Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: {
    // It counts mails to an address over all tenants, and no tenant's work may see those of another.
    roleRoutines: ['auth.queue_mail(uuid, uuid, text, text, jsonb, integer)'],
  },
  operations: AUTH_OPERATIONS,
  guidance: AUTH_GUIDANCE,
  calls: [
    'data.audit.denySignIn',
    'data.audit.note',
    'data.audit.suppress',
    'data.users.find',
    'data.users.get',
    'data.users.mayLetIn',
    'data.users.provision',
    'metadata.snapshots.get',
    'metadata.tenants.get',
    'metadata.tenants.list',
    'notifications.mails.stop',
  ],
  forOperators: [
    'auth.clients.rotateSecret',
    'auth.domains.add',
    'auth.domains.check',
    'auth.domains.list',
    'auth.domains.remove',
    'auth.factors.reset',
    'auth.identities.remove',
    'auth.identityProviders.check',
    'auth.identityProviders.setSecret',
    'auth.keys.rotate',
    'auth.secrets.reseal',
    'auth.users.createLink',
    'auth.users.revoke',
  ],
  repeatable: [
    'auth.calendarLinks.find',
    'auth.deprecatedUses.list',
    'auth.domains.check',
    'auth.domains.list',
    'auth.grants.check',
    'auth.identityProviders.check',
    'auth.keys.list',
    'auth.mails.askApprovers',
    'auth.mails.notify',
    'auth.mails.organizer',
    'auth.mails.states',
    'auth.origins.check',
    'auth.users.mayInvite',
  ],
  emits: ['auth.grants.revoked', 'auth.keys.rotated', 'auth.user.signedIn'],
  hears: ['auth.keys.rotated', 'metadata.schema.changed', 'metadata.tenant.changed'],
  consent: {
    openid: { area: 'you', text: 'Know who you are.' },
    profile: { area: 'you', text: 'Know your name, username, language and time zone.' },
    email: { area: 'you', text: 'Know your e-mail address.' },
    'me:read': { area: 'you', text: 'See your profile, and which applications you have connected.' },
    'me:write': { area: 'you', text: 'Change your preferences, and disconnect applications.' },
    offline_access: {
      area: 'away',
      text: 'Stay connected while you are away, until you or an administrator end it.',
    },
  },
  moving: {
    parts: [
      // Subject at an OpenID provider: no secret, and it prevents confusion with others of the same address.
      { name: 'identities', table: 'auth.identities', group: 'trail', ofCredentials: true },
    ],
    made: ['auth.domains', 'auth.credentials'],
    leftBehind: [
      'auth.address_links',
      'auth.audit_entries',
      'auth.authenticators',
      'auth.calendar_links',
      'auth.client_secrets',
      'auth.deprecated_uses',
      'auth.grants',
      'auth.known_origins',
      'auth.mails',
      'auth.passkeys',
      'auth.password_links',
      'auth.provider_secrets',
      'auth.recovery_codes',
      'auth.tenant_origins',
    ],
  },
} as const satisfies ServiceDeclaration<typeof AUTH_OPERATIONS>;
