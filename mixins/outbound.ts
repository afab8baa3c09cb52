/**
 * The one door for requests to addresses that tenants name, such as those of OpenID providers and client metadata documents:
 * nothing inside the network can be reached by them, and no host holds up or fills this process. HTTPS to public addresses
 * alone, without redirects; short answers in a short time, a few at once for one host. A name is resolved once, and the
 * connection is made to the addresses that were checked, so a name that leads elsewhere a moment later leads nowhere.
 * Source: docs/reference/security.md#requests-to-other-hosts.
 */
import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns';
import { Agent as AgentInClear, type IncomingMessage, request as requestInClear } from 'node:http';
import { Agent as AgentByTls, request as requestByTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { codeOf } from '../lib/errors/thrown.ts';
import { isPublicAddress } from './public-addresses.ts';

export const ANSWER_MAX_BYTES = 256 * 1024;
const ANSWER_MAX_SECONDS = 5;
/** Of one host, for one that named it. */
const AT_ONCE_PER_HOST = 20;
/** Idle connections are closed after so long. */
const KEPT_MS = 10_000;

/** A host was not reached, or its answer is beyond the bounds. The message says why, and holds nothing of the answer. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
}

/** So many requests to the host are under way that this one was not made. */
export class HostBusyError extends OutboundError {}

interface RequestOptions {
  readonly method?: string | undefined;
  readonly headers?: RequestInit['headers'] | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
  /** Until the whole answer is there; default: 5. */
  readonly maxSeconds?: number | undefined;
  /** The beginning of the answer is enough: the rest is not read. Default: a longer answer than 256 KiB is refused. */
  readonly headBytes?: number | undefined;
  /**
   * The connection is kept for a while, for further requests to the host. A request on one that was closed meanwhile is made again, so
   * the receiver may have it twice.
   */
  readonly keeps?: boolean | undefined;
  /** Milliseconds to wait while many requests to the host are under way; default: 0. */
  readonly waitMs?: number | undefined;
}

/** `namedBy`: the address in whose name the request is made, such as the issuer of a provider; often `address` itself. */
export type GuardedFetch = (address: string, options: RequestOptions, namedBy: string) => Promise<Response>;

/** As `lookup` of node:dns with `all`. */
type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

const NO_STATUS = 'the answer has no status';
const NOT_PUBLIC = 'the host has no public address, and is none that the operator allows';

/**
 * `privateHosts`: hosts (`host` or `host:port`) that may be reached at private addresses, from issuers on one of them only:
 * a public issuer's document cannot lead inside. On the loopback also over http.
 */
export function guardedFetch(privateHosts: readonly string[], resolve: Lookup = lookup): GuardedFetch {
  const publicLookup = lookupOfPublic(resolve);
  const allowed = new Set(privateHosts);
  const isNamed = ({ host, hostname }: URL): boolean => allowed.has(host) || allowed.has(hostname);
  const ways = new Map<string, Way>();
  // Kept apart: who may not reach a private address is not to find a connection to it.
  const [kept, keptPrivate] = [keptConnections(), keptConnections()];
  return async (address, options, namedBy) => {
    const url = new URL(address);
    const namer = new URL(namedBy);
    const isAllowed = isNamed(url) && isNamed(namer);
    if (url.protocol !== 'https:' && !(isAllowed && url.protocol === 'http:' && isLoopback(url.hostname)))
      throw new OutboundError('the address is not https');
    const literal = url.hostname.replace(/^\[|\]$/g, '');
    if (!isAllowed && isIP(literal) !== 0 && !isPublicAddress(literal)) throw new OutboundError(NOT_PUBLIC);
    // A caller cannot displace another one by naming its host.
    const way = `${namer.host} ${url.host}`;
    const leave = await enter(ways, way, options.waitMs ?? 0);
    try {
      return await send(url, options, isAllowed ? undefined : publicLookup, isAllowed ? keptPrivate : kept);
    } finally {
      leave();
    }
  };
}

interface Way {
  underWay: number;
  readonly waiting: Set<() => void>;
}

/** Takes a place on the way to a host; answers what gives it to the next one. Throws HostBusyError. */
async function enter(ways: Map<string, Way>, name: string, waitMs: number): Promise<() => void> {
  const way = ways.get(name) ?? { underWay: 0, waiting: new Set() };
  ways.set(name, way);
  if (way.underWay < AT_ONCE_PER_HOST) way.underWay++;
  else
    await new Promise<void>((resolve, reject) => {
      const given = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        way.waiting.delete(given);
        reject(new HostBusyError('too many requests to the host are under way'));
      }, waitMs);
      way.waiting.add(given);
    });
  return () => {
    const [next] = way.waiting;
    if (next) {
      way.waiting.delete(next);
      next();
    } else if (--way.underWay === 0) ways.delete(name);
  };
}

type KeptConnections = Record<'http:' | 'https:', AgentInClear>;

/** Connections that were made to addresses which were checked. Their names are looked up again when new ones are made. */
function keptConnections(): KeptConnections {
  const options = { keepAlive: true, maxFreeSockets: AT_ONCE_PER_HOST, timeout: KEPT_MS };
  return { 'http:': new AgentInClear(options), 'https:': new AgentByTls(options) };
}

const isLoopback = (host: string): boolean => ['localhost', '127.0.0.1', '[::1]'].includes(host);

async function send(
  url: URL,
  { method = 'GET', headers, body, signal, maxSeconds = ANSWER_MAX_SECONDS, headBytes, keeps = false }: RequestOptions,
  byLookup: LookupFunction | undefined,
  kept: KeptConnections,
): Promise<Response> {
  const timeout = AbortSignal.timeout(maxSeconds * 1_000);
  const until = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const text = body === undefined || body === null ? null : String(body);
  const options = {
    method,
    headers: {
      ...Object.fromEntries(new Headers(headers)),
      ...(text === null ? {} : { 'content-length': String(Buffer.byteLength(text)) }),
    },
    signal: until,
    ...(byLookup ? { lookup: byLookup } : {}),
  };
  const isTls = url.protocol === 'https:';
  const ask = (agent: AgentInClear | false): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const request = (isTls ? requestByTls : requestInClear)(url, { ...options, agent }, resolve);
      request.on('error', (error) => {
        // The host may have closed the connection just when it was used again.
        if (request.reusedSocket && codeOf(error) === 'ECONNRESET') ask(false).then(resolve, reject);
        else reject(error);
      });
      // Node reports neither an answer nor an error for it, so the promise would stay pending.
      request.on('upgrade', (_answer, socket) => {
        socket.destroy();
        reject(new OutboundError(NO_STATUS));
      });
      request.end(text ?? undefined);
    });
  try {
    return await responseOf(await ask(keeps && kept[isTls ? 'https:' : 'http:']), headBytes);
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    if (timeout.aborted) throw new OutboundError(`no answer within ${maxSeconds} s`);
    const code = codeOf(error);
    throw new OutboundError(typeof code === 'string' ? `not reached (${code})` : 'not reached');
  }
}

/** Answers with the public addresses of a name alone; the connection is made to one of these. */
const lookupOfPublic =
  (resolve: Lookup): LookupFunction =>
  (hostname, options, callback) =>
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      // Another error would tell tenants which names the internal network has.
      if (error) return callback(codeOf(error) === 'ENOTFOUND' ? new OutboundError(NOT_PUBLIC) : error, '', 0);
      const found = addresses.filter(({ address }) => isPublicAddress(address));
      const [first] = found;
      if (!first) return callback(new OutboundError(NOT_PUBLIC), '', 0);
      if (options.all) return (callback as (error: null, all: LookupAddress[]) => void)(null, found);
      callback(null, first.address, first.family);
    });

async function responseOf(answer: IncomingMessage, headBytes = Number.POSITIVE_INFINITY): Promise<Response> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // To leave the loop ends the download.
    if (bytes > ANSWER_MAX_BYTES) throw new OutboundError(`the answer is longer than ${ANSWER_MAX_BYTES} bytes`);
    chunks.push(chunk);
    if (bytes >= headBytes) break;
  }
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 599) throw new OutboundError(NO_STATUS);
  const headers = new Headers();
  for (const name of ['content-type', 'cache-control', 'retry-after', 'www-authenticate']) {
    const value = answer.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  return new Response([204, 205, 304].includes(status) ? null : Buffer.concat(chunks), { status, headers });
}
