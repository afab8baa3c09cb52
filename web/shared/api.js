/** Calls of the public API in the name of the person. */
import { accessToken, signInAgain } from './sign-in.js';

/** Repeated after a wait that the answer names: too many calls at once, or a service that is just coming back. */
const REPEATED = new Set([429, 503]);
const REPEATS_MAX = 2;
const WAIT_MAX_SECONDS = 5;
/** Fewer costly calls than the platform takes of one connection at once, so that none is refused and asked again. */
const COSTLY_AT_ONCE = 6;

/** An answer that is an error of the API, or none at all. */
export class CallFailed extends Error {
  /**
   * @param {number} status 0: there was no answer
   * @param {string} code
   * @param {string} message
   * @param {{ details?: Record<string, unknown>, errors?: { message: string }[] }} [facts]
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

/** @param {number} seconds */
const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/**
 * @param {string} path below /api/v1
 * @param {{ body?: object, key?: string, signal?: AbortSignal }} [options] key: of a change, which is stored once
 * @returns {Promise<any>} the body of the answer
 */
export async function call(path, { body, key, signal } = {}) {
  for (let repeats = 0; ; repeats++) {
    const response = await send(path, body, key, signal);
    if (response.ok) return response.json();
    if (response.status === 401) {
      const refused = await failure(response);
      if (refused.code !== 'AUTHENTICATION_INSUFFICIENT') return signInAgain();
      throw refused;
    }
    const seconds = Number(response.headers.get('retry-after') ?? 1);
    if (!REPEATED.has(response.status) || repeats === REPEATS_MAX || seconds > WAIT_MAX_SECONDS)
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
 * @param {object | undefined} body
 * @param {string | undefined} key
 * @param {AbortSignal | undefined} signal
 */
async function send(path, body, key, signal) {
  const token = await accessToken();
  /** @type {RequestInit} */
  const request = { headers: { authorization: `Bearer ${token}` }, cache: 'no-store' };
  if (signal) request.signal = signal;
  if (body)
    Object.assign(request, {
      method: 'POST',
      headers: {
        ...request.headers,
        'content-type': 'application/json',
        ...(key ? { 'idempotency-key': key } : {}),
      },
      body: JSON.stringify(body),
    });
  try {
    return await fetch(`/api/v1${path}`, request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CallFailed(0, 'NO_ANSWER', 'The platform cannot be reached. Check your connection and try again.');
  }
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
