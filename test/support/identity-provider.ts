/** The OpenID provider of a company: an oidc-provider of its own, with its own people, on the loopback. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import { type Context, Provider } from 'oidc-provider';
import type { Certificate } from './certificates.ts';

export const CLIENT_ID = 'erp-platform';
export const CLIENT_SECRET = 'a-secret-of-the-company';

/** The provider's claims about a user who signs in with this login. */
type Claims = Record<string, unknown> & { sub: string };

export class IdentityProvider {
  /** Claims by login. */
  readonly people = new Map<string, Claims>();
  /** Requests that it got, as `METHOD path`. */
  readonly requests: string[] = [];
  /** Parameters of the authorization requests. */
  readonly asked: URLSearchParams[] = [];
  /** Changes the claims of the next ID tokens, or what they are signed with. */
  tamper: ((payload: Record<string, unknown>) => Record<string, unknown> | string) | null = null;
  /** In place of what it says of itself. */
  metadata: Record<string, unknown> = {};
  /** It answers nothing on these paths, or lets go of the connection. */
  silent: ReadonlySet<string> = new Set();
  gone = false;
  issuer = '';
  readonly #server: Server;
  readonly #origin: string;
  #handler: (req: IncomingMessage, res: ServerResponse) => unknown = () => {};
  #key: JWK = {};
  #redirectUris: readonly string[] = [];

  /** With the certificate of `localhost`: it has that name, and is reached by https. */
  constructor(tls?: Certificate) {
    const answer = (req: IncomingMessage, res: ServerResponse): void => this.#answer(req, res);
    this.#server = tls ? createTlsServer(tls, answer) : createServer(answer);
    this.#origin = tls ? 'https://localhost' : 'http://127.0.0.1';
  }

  /** Takes a port; requests are answered once there is a client. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.issuer = `${this.#origin}:${(this.#server.address() as AddressInfo).port}`;
  }

  get host(): string {
    return new URL(this.issuer).host;
  }

  /** Knows the platform by its ways back, those of before without any; signs with a new key. */
  async serve(...redirectUris: readonly string[]): Promise<void> {
    if (redirectUris.length > 0) this.#redirectUris = redirectUris;
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    this.#key = { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: `key-${Math.random()}` };
    const provider: Provider = new Provider(this.issuer, {
      clients: [
        { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [...this.#redirectUris] },
        { client_id: 'another-application', client_secret: 'x', redirect_uris: ['https://other.example/cb'] },
      ],
      jwks: { keys: [this.#key] },
      routes: { token: '/token', jwks: '/jwks', userinfo: '/me', authorization: '/auth' },
      cookies: {
        keys: ['of the company'],
        names: { session: 'idp_session', interaction: 'idp_interaction', resume: 'idp_resume' },
      },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
      extraTokenClaims: () => ({}),
      findAccount: (_ctx: Context, login: string) => {
        const claims = this.people.get(login);
        return claims && { accountId: login, claims: () => ({ ...claims }) };
      },
      async loadExistingGrant({ oidc }: Context) {
        const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
        grant.addOIDCScope('openid email profile');
        await grant.save();
        return grant;
      },
    });
    provider.silent = true;
    this.#handler = provider.callback();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(req: IncomingMessage, res: ServerResponse): void {
    const url = new URL(req.url ?? '/', this.issuer);
    this.requests.push(`${req.method} ${url.pathname}`);
    if (url.pathname === '/auth' && url.searchParams.has('state')) this.asked.push(url.searchParams);
    if (this.gone) return void req.socket.destroy();
    if (this.silent.has(url.pathname)) return;
    if (url.pathname === '/token') this.#tamperWith(res);
    if (url.pathname === '/.well-known/openid-configuration') this.#describe(res);
    this.#handler(req, res);
  }

  #describe(res: ServerResponse): void {
    const end = res.end.bind(res);
    res.end = ((chunk?: unknown) => {
      const text = JSON.stringify({ ...JSON.parse(String(chunk)), ...this.metadata });
      res.setHeader('content-length', Buffer.byteLength(text));
      return end(text);
    }) as typeof res.end;
  }

  #tamperWith(res: ServerResponse): void {
    const end = res.end.bind(res);
    res.end = ((chunk?: unknown, ...rest: never[]) => {
      const body = typeof chunk === 'string' || Buffer.isBuffer(chunk) ? JSON.parse(String(chunk)) : null;
      if (!this.tamper || typeof body?.id_token !== 'string') return end(chunk as never, ...rest);
      const payload = JSON.parse(Buffer.from(body.id_token.split('.')[1], 'base64url').toString());
      const changed = this.tamper(payload);
      const token = typeof changed === 'string' ? Promise.resolve(changed) : this.sign(changed);
      void token.then((id_token) => {
        const text = JSON.stringify({ ...body, id_token });
        res.setHeader('content-length', Buffer.byteLength(text));
        end(text);
      });
      return res;
    }) as typeof res.end;
  }

  async sign(payload: Record<string, unknown>): Promise<string> {
    const key = await importJWK(this.#key, 'RS256');
    return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: this.#key.kid! }).sign(key);
  }
}
