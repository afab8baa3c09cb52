/** One HTTP exchange with the platform: time limits, and failures of the network in words. */
import { EXIT, Failure } from '../failure.ts';
import { counted } from '../output/values.ts';

export interface Exchange {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  timeoutMs: number;
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

/** The platform could not be reached, or the connection ended before its answer did. */
export class NetworkFailure extends Failure {
  /** Nothing of the request can have arrived. */
  readonly neverSent: boolean;

  constructor(message: string, neverSent: boolean, cause: unknown) {
    super('CLIENT_NETWORK', EXIT.error, message, { cause });
    this.neverSent = neverSent;
  }
}

/** The answer was given up because there is no end to it: asking again would not change that. */
export class AnswerTooLarge extends NetworkFailure {}

/** Far more than the platform answers; only a bound on what is held in memory. */
const ANSWER_MAX_MIB = 128;

/** The body of an answer, decompressed, up to the bound. */
export function boundedBody(response: Response, url: URL): ReadableStream<Uint8Array> | null {
  let bytes = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes <= ANSWER_MAX_MIB * 1024 * 1024) controller.enqueue(chunk);
      else
        controller.error(
          new AnswerTooLarge(`${url.origin} answered with more than ${ANSWER_MAX_MIB} MiB.`, false, undefined),
        );
    },
  });
  return response.body?.pipeThrough(counted) ?? null;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Hosts that are this machine: only they may be talked to without TLS. */
export const isLoopback = ({ hostname }: URL): boolean => LOOPBACK.test(hostname);

/** A base URL as the user gave it, without the slash at its end. */
export function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.username || url.search || url.hash)
    throw new Failure('CLIENT_USAGE', EXIT.usage, `${text} is no base URL.`, {
      hint: 'A base URL looks like https://erp.example.com, without /api/v1.',
    });
  if (url.protocol === 'http:' && !isLoopback(url))
    throw new Failure('CLIENT_USAGE', EXIT.usage, `${text} is not encrypted: a token would travel in clear text.`, {
      hint: 'Use https. Without it only this machine can be reached: localhost, 127.0.0.1, [::1].',
    });
  const address = url.href.replace(/\/+$/, '');
  const api = /\/api\/v\d+$/.exec(address);
  if (api)
    throw new Failure('CLIENT_USAGE', EXIT.usage, `${text} is the address of the API, which erp finds itself.`, {
      hint: `Leave out ${api[0]}: ${address.slice(0, api.index)}`,
    });
  return address;
}

const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/** Sends a request once. */
export async function exchange({ method, url, headers, body, timeoutMs }: Exchange): Promise<Reply> {
  try {
    const response = await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await new Response(boundedBody(response, url)).text();
    return { status: response.status, headers: response.headers, text };
  } catch (error) {
    if (error instanceof AnswerTooLarge) throw error;
    throw networkFailure(error, url, timeoutMs);
  }
}

/** Asks for content whose body is read by the caller, for as long as it takes. `timeoutMs`: until it begins. */
export async function openContent({ url, headers, timeoutMs }: Omit<Exchange, 'method' | 'body'>): Promise<Response> {
  const began = new AbortController();
  const limit = setTimeout(() => began.abort(new DOMException('', 'TimeoutError')), timeoutMs);
  try {
    return await fetch(url, { headers, signal: began.signal });
  } catch (error) {
    throw networkFailure(error, url, timeoutMs);
  } finally {
    clearTimeout(limit);
  }
}

export function networkFailure(error: unknown, url: URL, timeoutMs: number): NetworkFailure {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return new NetworkFailure(
      `${url.origin} did not answer within ${counted(timeoutMs / 1000, 'second', 'seconds')}.`,
      false,
      error,
    );
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const reason = cause instanceof Error && cause.message ? cause.message : String(error);
  return NEVER_SENT.has(code)
    ? new NetworkFailure(`${url.origin} cannot be reached (${code}).`, true, error)
    : new NetworkFailure(`The connection to ${url.origin} failed: ${reason}.`, false, error);
}
