/**
 * Requests to OpenID providers, whose addresses tenants choose: nothing inside the network can be reached by them, and no
 * provider holds up or fills this process. HTTPS to public addresses alone, without redirects; short answers in a short
 * time, a few at once for one host. The address is checked where the connection is made, so a name that leads elsewhere
 * in the meantime leads nowhere. Source: docs/reference/authentication.md#single-sign-on.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { type IncomingMessage, request as requestInClear } from 'node:http';
import { request as requestByTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from './public-addresses.ts';

export const ANSWER_MAX_BYTES = 256 * 1024;
export const ANSWER_MAX_SECONDS = 5;
/** Of one provider. */
const AT_ONCE_PER_HOST = 20;

/** A provider was not reached, or its answer is beyond the bounds. The message says why, and holds nothing of the answer. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
}

interface RequestOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** `issuer`: of the provider that has named the address, in its own or the tenant's words. */
export type GuardedFetch = (address: string, options: RequestOptions, issuer: string) => Promise<Response>;

const NOT_PUBLIC = 'the host has no public address, and is none that the operator allows';

/**
 * `privateHosts`: hosts (`host` or `host:port`) that may be reached wherever they are, by providers that are on one of them
 * themselves: what a provider of the internet says of its addresses leads nobody inside. One on the loopback also in the clear.
 */
export function guardedFetch(privateHosts: readonly string[]): GuardedFetch {
  const allowed = new Set(privateHosts);
  const isNamed = ({ host, hostname }: URL): boolean => allowed.has(host) || allowed.has(hostname);
  const underWay = new Map<string, number>();
  return async (address, options, issuer) => {
    const url = new URL(address);
    const provider = new URL(issuer);
    const isAllowed = isNamed(url) && isNamed(provider);
    if (url.protocol !== 'https:' && !(isAllowed && url.protocol === 'http:' && isLoopback(url.hostname)))
      throw new OutboundError('the address is not https');
    const literal = url.hostname.replace(/^\[|\]$/g, '');
    if (!isAllowed && isIP(literal) !== 0 && !isPublicAddress(literal)) throw new OutboundError(NOT_PUBLIC);
    // No provider takes the place of another one, whose host it names.
    const way = `${provider.host} ${url.host}`;
    const count = underWay.get(way) ?? 0;
    if (count >= AT_ONCE_PER_HOST) throw new OutboundError('too many requests to the host are under way');
    underWay.set(way, count + 1);
    try {
      return await send(url, options, isAllowed);
    } finally {
      const left = (underWay.get(way) ?? 1) - 1;
      if (left > 0) underWay.set(way, left);
      else underWay.delete(way);
    }
  };
}

const isLoopback = (host: string): boolean => ['localhost', '127.0.0.1', '[::1]'].includes(host);

async function send(url: URL, { method = 'GET', headers, body, signal }: RequestOptions, isAllowed: boolean) {
  const timeout = AbortSignal.timeout(ANSWER_MAX_SECONDS * 1_000);
  const until = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const text = body === undefined || body === null ? null : String(body);
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = (url.protocol === 'https:' ? requestByTls : requestInClear)(
        url,
        {
          method,
          headers: { ...headers, ...(text === null ? {} : { 'content-length': String(Buffer.byteLength(text)) }) },
          signal: until,
          // A connection of its own, so that the address of each one is checked.
          agent: false,
          ...(isAllowed ? {} : { lookup: publicLookup }),
        },
        resolve,
      );
      request.on('error', reject);
      request.end(text ?? undefined);
    });
    return await responseOf(answer);
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    if (timeout.aborted) throw new OutboundError(`no answer within ${ANSWER_MAX_SECONDS} s`);
    const { code } = error as { code?: unknown };
    throw new OutboundError(typeof code === 'string' ? `not reached (${code})` : 'not reached');
  }
}

/** Answers with the public addresses of a name alone. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 0);
    const found = addresses.filter(({ address }) => isPublicAddress(address));
    const [first] = found;
    if (!first) return callback(new OutboundError(NOT_PUBLIC), '', 0);
    if (options.all) return (callback as (error: null, all: LookupAddress[]) => void)(null, found);
    callback(null, first.address, first.family);
  });
};

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // To leave the loop ends the download.
    if (bytes > ANSWER_MAX_BYTES) throw new OutboundError(`the answer is longer than ${ANSWER_MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 599) throw new OutboundError('the answer has no status');
  const headers = new Headers();
  for (const name of ['content-type', 'cache-control', 'www-authenticate']) {
    const value = answer.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  return new Response([204, 205, 304].includes(status) ? null : Buffer.concat(chunks), { status, headers });
}
