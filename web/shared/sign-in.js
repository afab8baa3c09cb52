/**
 * Signs the person in: authorization code with PKCE, as a public client. The access token is held in memory alone and
 * is gone with the page; who has signed in with this browser gets the next one without being asked.
 */
import { speakTo } from './language.js';
import { common } from './words.js';

const { base = '', client = '', scope = '', home = '' } = document.body.dataset;
const WAITING = `${client}:`;
const LAST = `${client}-last`;
/** A token refused so soon after it was given is refused for another reason than its age. */
const LOOP_MS = 10_000;
/** A token that ends while its request is under way would be refused. */
const SPARE_MS = 30_000;

/** @type {{ accessToken: string, endsAt: number, scopes: string[] } | null} */
let held = null;

/** The reason for a return without a token, in words for people. */
export class SignInFailed extends Error {}

/** @param {Uint8Array} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const here = () => location.pathname + location.search + location.hash;

/**
 * Moves to the address that the platform is known by: tokens go nowhere else.
 * @returns {boolean} whether the page is about to be left
 */
export function moveHome() {
  if (location.origin === base) return false;
  location.replace(base + here());
  return true;
}

/**
 * Signs in, then loads the rest and begins. A visitor without a token leaves at once for the sign-in, and does not wait
 * for scripts that only the way back needs.
 * @param {() => Promise<{ begin: (refused: unknown) => Promise<void> }>} load refused: why there is no sign-in; null:
 *   there is one
 */
export async function start(load) {
  if (moveHome()) return;
  speakTo(navigator.language);
  await signInAs();
  const refused = await completeSignIn()
    .then(accessToken)
    .then(
      () => null,
      (error) => error,
    );
  const { begin } = await load();
  await begin(refused);
}

/** The page was opened for a person (`?as=<username>`), who signs in even where somebody else is signed in. */
async function signInAs() {
  const username = new URLSearchParams(location.search).get('as');
  if (location.pathname !== home || username === null) return;
  history.replaceState(null, '', home);
  await leaveForSignIn(scope, { login_hint: username.slice(0, 255), prompt: 'login' });
}

/** The token; without one this leaves the page for the sign-in and never returns. */
export async function accessToken() {
  if (held && held.endsAt > Date.now() + SPARE_MS) return held.accessToken;
  // One that ends is renewed from here: what the page holds, such as a chosen file, would be gone with it.
  if (held) await (renewing ??= renew().finally(() => (renewing = null)));
  if (held && held.endsAt > Date.now() + SPARE_MS) return held.accessToken;
  return leaveForSignIn();
}

/** @type {Promise<void> | null} */
let renewing = null;

/**
 * Asks for another token with the browser's session; without one the old token stays. Rejects without an answer: leaving
 * for the sign-in would lead nowhere, and what the page holds would be gone.
 */
async function renew() {
  const { parameters, state, verifier } = await authorization(scope, { prompt: 'none' });
  // The answer is a redirect to this page, whose address has the code.
  const { url, status } = await fetch(`/oauth2/authorize?${parameters}`, { cache: 'no-store' });
  if (status >= 500) throw new Error(`The sign-in has answered ${status}.`);
  const answer = new URL(url).searchParams;
  const code = answer.get('code');
  if (code !== null && answer.get('state') === state && answer.get('iss') === base) await redeem(code, verifier);
}

/**
 * The API has refused the token.
 * @returns {Promise<never>}
 */
export function signInAgain() {
  held = null;
  if (Date.now() - Number(sessionStorage.getItem(LAST) ?? 0) < LOOP_MS) throw new SignInFailed(common('signInRefused'));
  return leaveForSignIn();
}

/** The token, while there is one that can still be used. */
export const heldToken = () => (held && held.endsAt > Date.now() ? held.accessToken : null);

/** @param {string} wanted */
export const hasScope = (wanted) => held?.scopes.includes(wanted) ?? false;

/**
 * @param {string} [wanted] scopes, separated by spaces
 * @param {Record<string, string>} [strength] more of the request, such as `acr_values` and `max_age` of a sign-in that must be strong or fresh
 * @returns {Promise<never>}
 */
export async function leaveForSignIn(wanted = scope, strength = {}) {
  const { parameters, state, verifier } = await authorization(wanted, strength);
  sessionStorage.setItem(WAITING + state, JSON.stringify({ verifier, returnTo: here() }));
  keep?.();
  // No entry of the history: going back from here leads to what was looked at before.
  location.replace(`/oauth2/authorize?${parameters}`);
  return new Promise(() => {});
}

/** @type {(() => void) | null} */
let keep = null;

/**
 * @param {() => void} store what the page holds, before it is left for a sign-in
 */
export function beforeSignIn(store) {
  keep = store;
}

/**
 * @param {string} wanted
 * @param {Record<string, string>} more parameters
 */
async function authorization(wanted, more) {
  const state = random();
  const verifier = random();
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const parameters = new URLSearchParams({
    client_id: client,
    response_type: 'code',
    redirect_uri: base + home,
    scope: wanted,
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
    ...more,
  });
  return { parameters, state, verifier };
}

/** Takes the answer of a sign-in out of the address, if there is one. */
export async function completeSignIn() {
  const answer = new URLSearchParams(location.search);
  const state = answer.get('state');
  if (location.pathname !== home || state === null) return;
  const waiting = sessionStorage.getItem(WAITING + state);
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(WAITING)) sessionStorage.removeItem(key);
  /** @type {{ verifier: string, returnTo: string }} */
  const { verifier, returnTo } = waiting === null ? { verifier: '', returnTo: home } : JSON.parse(waiting);
  history.replaceState(null, '', returnTo);
  // An answer that this page did not ask for is none; without the name of this issuer neither (RFC 9207).
  if (waiting === null || answer.get('iss') !== base) return;
  const code = answer.get('code');
  if (code === null)
    throw new SignInFailed(common(answer.get('error') === 'access_denied' ? 'signInCanceled' : 'signInFailed'));
  if (!(await redeem(code, verifier))) throw new SignInFailed(common('signInExpired'));
  sessionStorage.setItem(LAST, String(Date.now()));
}

/**
 * @param {string} code
 * @param {string} verifier
 * @returns {Promise<boolean>} whether there is a token for it
 */
async function redeem(code, verifier) {
  const response = await fetch('/oauth2/token', {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: client,
      redirect_uri: base + home,
      code,
      code_verifier: verifier,
    }),
  });
  if (!response.ok) return false;
  const { access_token, expires_in, scope: granted } = await response.json();
  held = { accessToken: access_token, endsAt: Date.now() + expires_in * 1_000, scopes: granted.split(' ') };
  return true;
}

/** Ends what this page may do, before the browser's session is ended. */
export async function revoke() {
  const token = held?.accessToken;
  held = null;
  if (token === undefined) return;
  await fetch('/oauth2/revoke', {
    method: 'POST',
    body: new URLSearchParams({ client_id: client, token }),
    keepalive: true,
  }).catch(() => {});
}
