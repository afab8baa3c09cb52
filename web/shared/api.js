/** Calls of the public API in the name of the person. */
import { accessToken, SignInFailed, signInAgain } from './sign-in.js';
import { common } from './words.js';

/** Repeated after a wait that the answer names: too many calls at once, or a service that is just coming back. */
const REPEATED = new Set([429, 503]);
const REPEATS_MAX = 2;
const WAIT_MAX_SECONDS = 5;
/** Limits of background work, such as the upload of many parts. */
const PATIENT = { repeats: 20, waitSeconds: 60 };
/** Fewer costly calls than the platform takes of one connection at once, so that none is refused and asked again. */
const COSTLY_AT_ONCE = 6;

/** An answer that is an error of the API, or none at all. */
export class CallFailed extends Error {
  /**
   * @param {number} status 0: there was no answer
   * @param {string} code
   * @param {string} message
   * @param {{ details?: Record<string, unknown>, errors?: { message: string, pointer?: string }[] }} [facts]
   */
  constructor(status, code, message, { details = {}, errors = [] } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
    this.errors = errors;
  }

  /** The same request may succeed later without a change. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/**
 * @typedef {object} Call
 * @property {string} method
 * @property {string} path below /api/v1
 * @property {Record<string, string>} headers without the token
 * @property {object | undefined} body
 * @property {number} status 0: no answer
 * @property {number} milliseconds
 */

/** @type {((call: Call) => void) | null} */
let watcher = null;

/**
 * Each attempt is reported once it has ended.
 * @param {(call: Call) => void} watch
 */
export function watchCalls(watch) {
  watcher = watch;
}

/** @type {string | null} */
let language = null;

/**
 * Labels are answered in this language instead of the browser's.
 * @param {string} locale
 */
export function askIn(locale) {
  language = locale;
}

/** @param {number} seconds */
const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/**
 * @typedef {object} CallOptions
 * @property {object} [body] sent as JSON, with POST
 * @property {{ type: string, bytes: Uint8Array<ArrayBuffer> }} [content] sent as it is, with its digest
 * @property {string} [method] default: GET, or POST with a body
 * @property {string} [accept]
 * @property {string} [key] of a change, which is stored once
 * @property {string} [etag] of what is changed, which nobody has changed since
 * @property {string} [confirmation] token of the duplicates that were found and accepted
 * @property {AbortSignal} [signal]
 * @property {boolean} [patient] waits until the platform takes more
 */

/**
 * @param {string} path below /api/v1
 * @param {CallOptions} [request]
 * @returns {Promise<any>} the body of the answer
 */
export async function call(path, request) {
  const response = await answer(path, request);
  return response.status === 204 ? null : response.json();
}

/**
 * @param {string} path below /api/v1
 * @param {CallOptions} [request]
 * @returns {Promise<Response>} with a status of success
 */
export async function answer(path, request = {}) {
  const limits = request.patient ? PATIENT : { repeats: REPEATS_MAX, waitSeconds: WAIT_MAX_SECONDS };
  for (let repeats = 0; ; repeats++) {
    const response = await send(path, request);
    if (response.ok) return response;
    if (response.status === 401) {
      const refused = await failure(response);
      if (refused.code !== 'AUTHENTICATION_INSUFFICIENT') return signInAgain();
      throw refused;
    }
    const seconds = Number(response.headers.get('retry-after') ?? 1);
    if (!REPEATED.has(response.status) || repeats === limits.repeats || seconds > limits.waitSeconds)
      throw await failure(response);
    await wait(seconds);
  }
}

let running = 0;
/** @type {(() => void)[]} */
const waiting = [];

/**
 * Does costly work as soon as there is a place for it.
 * @template Result
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
export async function inTurn(work) {
  if (running < COSTLY_AT_ONCE) running++;
  else await new Promise((/** @type {(value: void) => void} */ go) => waiting.push(go));
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    // The place passes on to who has waited longest.
    if (next) next();
    else running--;
  }
}

/**
 * @param {string} path
 * @param {CallOptions} request
 */
async function send(path, { body, content, method, accept, key, etag, confirmation, signal }) {
  const sent = content ?? (body ? { type: 'application/json', bytes: JSON.stringify(body) } : null);
  const asked = method ?? (sent ? 'POST' : 'GET');
  const headers = {
    ...(accept ? { accept } : {}),
    ...(language ? { 'accept-language': language } : {}),
    ...(sent ? { 'content-type': sent.type } : {}),
    ...(content ? { 'content-digest': await digestOf(content.bytes) } : {}),
    ...(key ? { 'idempotency-key': key } : {}),
    ...(etag ? { 'if-match': etag } : {}),
    ...(confirmation ? { 'x-duplicate-confirmation': confirmation } : {}),
  };
  const startedAt = performance.now();
  /** @param {number} status */
  const report = (status) =>
    watcher?.({ method: asked, path, headers, body, status, milliseconds: Math.round(performance.now() - startedAt) });
  try {
    const token = await accessToken();
    const response = await fetch(`/api/v1${path}`, {
      method: asked,
      headers: { ...headers, authorization: `Bearer ${token}` },
      ...(sent ? { body: sent.bytes } : {}),
      ...(signal ? { signal } : {}),
      cache: 'no-store',
    });
    report(response.status);
    return response;
  } catch (error) {
    if (signal?.aborted || error instanceof SignInFailed) throw error;
    report(0);
    throw new CallFailed(0, 'NO_ANSWER', common('noAnswer'));
  }
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function digestOf(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return `sha-256=:${btoa(String.fromCharCode(...digest))}:`;
}

/** @param {Response} response */
async function failure(response) {
  const { code, message, ...facts } = await response.json().catch(() => ({}));
  return new CallFailed(
    response.status,
    String(code ?? response.status),
    String(message ?? response.statusText),
    facts,
  );
}
