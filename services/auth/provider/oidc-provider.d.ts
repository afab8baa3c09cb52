/** The part of oidc-provider 9 that auth uses; the package ships no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';
  import type { ClientMarks } from '../../../lib/access/client-marks.ts';

  export interface Model {
    jti: string;
    kind: string;
    exp: number;
    iat: number;
    accountId?: string;
    clientId?: string;
    grantId?: string;
    scope?: string;
    save(ttl?: number): Promise<string>;
    destroy(): Promise<void>;
  }

  export interface Grant extends Model {
    openid?: { scope?: string };
    /** Of the client that the person said yes to; absent from a grant of an earlier version. */
    clientMarks?: ClientMarks;
    /** Of the sign-in under which it was given. */
    sessionGeneration?: number | undefined;
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    rejectOIDCScope(scope: string): void;
    rejectResourceScope(resource: string, scope: string): void;
  }

  export interface Client {
    clientId: string;
    clientName?: string;
    clientSecret?: string;
    grantTypes: string[];
    redirectUris: string[];
    scope?: string;
    [extra: string]: unknown;
  }

  /** A browser's sign-in; without an account before sign-in. */
  export interface Session {
    uid: string;
    accountId?: string;
    acr?: string;
    amr?: string[];
    /** Of the user's sessions when the sign-in began. */
    sessionGeneration?: number;
    id: string;
    /** Before the identifier was reset in this request. */
    oldId?: string | undefined;
    /** As the database knows it; undefined: it is new. */
    storedAs?: string;
    save(seconds: number): Promise<string>;
    /** Saves what was changed, for as long as the session lives anyway. */
    persist(): Promise<string>;
    /** When the person signed in, in seconds since 1970. */
    authTime(): number | undefined;
  }

  export interface Interaction extends Model {
    uid: string;
    returnTo: string;
    prompt: { name: string; reasons: string[]; details: Record<string, unknown> };
    params: Record<string, unknown>;
    session?: { accountId: string; uid: string };
    deviceCode?: string;
  }

  export interface Token extends Model {
    iiat?: number;
    extra?: Record<string, unknown>;
    resourceServer?: { accessTokenTTL?: number };
  }

  // biome-ignore lint/suspicious/noExplicitAny: a Koa context with the provider's own part
  export type Context = any;

  export interface Adapter {
    upsert(id: string, payload: Record<string, unknown>, expiresIn: number): Promise<void>;
    find(id: string): Promise<Record<string, unknown> | undefined>;
    findByUid(uid: string): Promise<Record<string, unknown> | undefined>;
    findByUserCode(userCode: string): Promise<Record<string, unknown> | undefined>;
    consume(id: string): Promise<void>;
    destroy(id: string): Promise<void>;
    revokeByGrantId(grantId: string): Promise<void>;
  }

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    /** The request that is being answered, where this is called from. */
    static readonly ctx: Context | undefined;
    readonly issuer: string;
    proxy: boolean;
    silent: boolean;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    use(middleware: (ctx: Context, next: () => Promise<void>) => Promise<void> | void): this;
    on(event: 'error', listener: (error: unknown) => void): this;
    on(
      event: 'server_error' | 'grant.error' | 'revocation.error' | 'userinfo.error',
      listener: (ctx: Context, error: unknown) => void,
    ): this;
    createContext(request: IncomingMessage, response: ServerResponse): Context;
    readonly Session: {
      get(ctx: Context): Promise<Session>;
      findByUid(uid: string): Promise<Session | undefined>;
      /** The members that are stored. */
      readonly IN_PAYLOAD: readonly string[];
      prototype: {
        loginAccount(this: Session, details: object): void;
        save(this: Session, seconds: number): Promise<string>;
      };
    };
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
      options?: { mergeWithLastSubmission?: boolean },
    ): Promise<string>;
    readonly Grant: {
      new (input: { accountId: string; clientId: string }): Grant;
      find(id: string): Promise<Grant | undefined>;
      /** The members that are stored. */
      readonly IN_PAYLOAD: readonly string[];
    };
    readonly Client: {
      find(id: string): Promise<Client | undefined>;
      prototype: { compareClientSecret(this: Client, actual: string): boolean };
    };
  }

  class ProviderError extends Error {
    constructor(description?: string, detail?: string);
    error: string;
    error_description?: string;
    status: number;
    statusCode: number;
  }

  export const errors: {
    OIDCProviderError: typeof ProviderError;
    InvalidClientAuth: typeof ProviderError;
    InvalidGrant: typeof ProviderError;
    InvalidScope: typeof ProviderError;
    InvalidTarget: typeof ProviderError;
    InvalidRequest: typeof ProviderError;
    SessionNotFound: typeof ProviderError;
    TemporarilyUnavailable: typeof ProviderError;
    UnauthorizedClient: typeof ProviderError;
    AccessDenied: typeof ProviderError;
  };

  interface Prompt {
    checks: { add(check: unknown): void; remove(reason: string): void };
  }

  export const interactionPolicy: {
    base(): { get(name: 'login' | 'consent'): Prompt };
    Check: new (reason: string, description: string, check: (ctx: Context) => boolean | Promise<boolean>) => unknown;
  };
}
