/** The sign-in of a person from a page: what a browser has to do for it. */
import { SignInError } from './errors.ts';
import type { TokenSource } from './http.ts';
import { base, refresh, renewed, type Server, tokenOf } from './tokens.ts';

/** Kept by the browser during the sign-in; useless without the rest of the flow. */
interface Started {
  state: string;
  verifier: string;
  /** Address to which the person returns. */
  address: string;
}

const RANDOM_BYTES = 32;

/**
 * Signs a person in from a page: authorization code with PKCE. The page at `redirectUri` calls this as well and finishes
 * the sign-in; then the address is the one at which the person began. Without a refresh token a token that has expired
 * leads to the sign-in page once more, which lets the person through while the browser is signed in.
 */
export async function signInInBrowser(options: Server & { readonly redirectUri?: string }): Promise<TokenSource> {
  const redirectUri = options.redirectUri ?? `${location.origin}${location.pathname}`;
  const item = `erp-sign-in ${options.clientId}`;
  const found = new URLSearchParams(location.search);
  const started = found.has('state') ? parseStarted(sessionStorage.getItem(item)) : null;
  const leave = () => leaveForSignIn(options, redirectUri, item);
  if (!started || started.state !== found.get('state')) return leave();
  sessionStorage.removeItem(item);
  history.replaceState(null, '', started.address);
  const error = found.get('error');
  if (error !== null) throw new SignInError(error, found.get('error_description') ?? error);
  if (found.get('iss') !== base(options))
    throw new SignInError('invalid_issuer', 'The answer is not from the platform that was asked.');
  const tokens = await tokenOf(options, {
    grant_type: 'authorization_code',
    code: found.get('code') ?? '',
    redirect_uri: redirectUri,
    code_verifier: started.verifier,
    client_id: options.clientId,
  });
  return renewed(tokens, (refreshToken) => (refreshToken ? refresh(options, refreshToken) : leave()));
}

/** Never resolves: the page is left. */
async function leaveForSignIn(server: Server, redirectUri: string, item: string): Promise<never> {
  // The address may still hold an answer to an earlier sign-in, which must not come back.
  const address = new URLSearchParams(location.search).has('state') ? redirectUri : location.href;
  const started: Started = { state: random(), verifier: random(), address };
  sessionStorage.setItem(item, JSON.stringify(started));
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(started.verifier));
  const url = new URL(`${base(server)}/oauth2/authorize`);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: server.clientId,
    redirect_uri: redirectUri,
    scope: server.scope,
    state: started.state,
    code_challenge: base64Url(new Uint8Array(hash)),
    code_challenge_method: 'S256',
  }).toString();
  // No entry of the history: going back leads to the page before this one.
  location.replace(url);
  return new Promise(() => undefined);
}

function parseStarted(text: string | null): Started | null {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

const random = (): string => base64Url(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));

const base64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
