/** The two ways to sign in: in a browser on this machine (RFC 8252), and with a code in any browser (RFC 8628). */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as oauth from 'openid-client';
import { MULTI_FACTOR_ACR } from '../../contracts/auth.ts';
import { EXIT, Failure, signInNeeded } from '../failure.ts';
import { closingPage } from './closing-page.ts';
import { credentialsOf, signInFailed } from './oauth.ts';
import type { Credentials } from './store.ts';

/** How long a person may take. */
const PATIENCE_MS = 10 * 60_000;
const HOSTS = ['127.0.0.1', '::1'] as const;

interface Caller {
  server: oauth.Configuration;
  scope: string;
}

interface BrowserSignIn extends Caller {
  /** Asks for a new sign-in with two factors, whatever the browser remembers. */
  stepUp: boolean;
  /** Opens an address in the browser, or tells the person to. */
  open: (url: URL) => Promise<void>;
}

/** Signs in by authorization code with PKCE; the browser comes back to a port of this machine. */
export async function signInWithBrowser({ server, scope, stepUp, open }: BrowserSignIn): Promise<Credentials> {
  const verifier = oauth.randomPKCECodeVerifier();
  const state = oauth.randomState();
  const loopback = await listen();
  try {
    const parameters = {
      redirect_uri: loopback.redirectUri,
      scope,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(stepUp ? { acr_values: MULTI_FACTOR_ACR, max_age: '0' } : {}),
    };
    const answered = loopback.answer(state, async (url) =>
      credentialsOf(
        await oauth.authorizationCodeGrant(server, url, { pkceCodeVerifier: verifier, expectedState: state }),
      ),
    );
    // A failure that comes while the browser opens is taken below.
    answered.catch(() => undefined);
    await open(oauth.buildAuthorizationUrl(server, parameters));
    return await answered;
  } finally {
    loopback.close();
  }
}

interface Loopback {
  redirectUri: string;
  /** Waits for the browser to come back with this state, and shows it how that ended. */
  answer(state: string, exchange: (url: URL) => Promise<Credentials>): Promise<Credentials>;
  close(): void;
}

async function listen(): Promise<Loopback> {
  const server = createServer();
  let host: string | undefined;
  for (const candidate of HOSTS) {
    if (await bound(server, candidate)) {
      host = candidate.includes(':') ? `[${candidate}]` : candidate;
      break;
    }
  }
  if (host === undefined)
    throw new Failure('CLIENT_SIGN_IN', EXIT.error, 'No port of this machine can be opened for the browser.', {
      hint: 'erp login --device works without one.',
    });
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  return {
    redirectUri: `${origin}/callback`,
    answer: (state, exchange) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(
          () => reject(signInNeeded('The sign-in was not completed within ten minutes.', 'Start over: erp login')),
          PATIENCE_MS,
        );
        let taken = false;
        server.on('request', async (request, response) => {
          const url = new URL(request.url ?? '/', origin);
          const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };
          // Any process can call this port; only the answer to our own request is listened to, and only once.
          if (
            request.method !== 'GET' ||
            url.pathname !== '/callback' ||
            url.searchParams.get('state') !== state ||
            taken
          ) {
            response.writeHead(404, headers).end();
            return;
          }
          taken = true;
          const outcome = await exchange(url).catch((error: unknown) => signInFailed(error));
          const failed = outcome instanceof Failure;
          const page = closingPage(failed ? outcome.message : null);
          response.writeHead(failed ? 400 : 200, { ...headers, ...page.headers, connection: 'close' });
          response.end(page.html, () => {
            clearTimeout(late);
            if (failed) reject(outcome);
            else resolve(outcome);
          });
        });
      }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const bound = (server: Server, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const refused = (): void => resolve(false);
    server.once('error', refused);
    server.listen(0, host, () => {
      server.off('error', refused);
      resolve(true);
    });
  });

interface DeviceSignIn extends Caller {
  /** Tells the person where to type which code. */
  show: (request: { url: string; completeUrl: string | undefined; userCode: string; expiresIn: number }) => void;
}

/** Signs in with a code that the person types in any browser. */
export async function signInWithDevice({ server, scope, show }: DeviceSignIn): Promise<Credentials> {
  try {
    const request = await oauth.initiateDeviceAuthorization(server, { scope });
    show({
      url: request.verification_uri,
      completeUrl: request.verification_uri_complete,
      userCode: request.user_code,
      expiresIn: request.expires_in,
    });
    return credentialsOf(await oauth.pollDeviceAuthorizationGrant(server, request));
  } catch (error) {
    throw signInFailed(error);
  }
}
