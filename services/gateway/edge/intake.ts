/** Receives bodies within their limits, whatever their encoding. Source: docs/reference/http.md, "Sizes". */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createGunzip } from 'node:zlib';
import type { TimeLimits } from '../../../contracts/time-limits.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { tooLarge } from '../../../lib/errors/too-large.ts';
import { LIMITS } from '../../../lib/limits.ts';

/**
 * A compressed body may become so many times as large, once it is larger than what any request may have. Configuration
 * in YAML compresses to a tenth, with many equal files to a fiftieth.
 */
const EXPANSION_MAX = 100;
const EXPANSION_FREE_BYTES = 1024 * 1024;

const expandsTooMuch = (): PlatformError =>
  new PlatformError('REQUEST_TOO_LARGE', `The body expands to more than ${EXPANSION_MAX} times its compressed size.`, {
    details: { maxExpansion: EXPANSION_MAX },
  });

/** The body as bytes, null when it is empty. The limit holds after decompression, and while the bytes arrive. */
export async function readBytes(
  { req, res, expectsContinue }: { req: IncomingMessage; res: ServerResponse; expectsContinue: boolean },
  maxBytes: number,
): Promise<Buffer | null> {
  const gzip = req.headers['content-encoding']?.trim().toLowerCase() === 'gzip';
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (expectsContinue) res.writeContinue();
  const gunzip = gzip ? createGunzip() : null;
  const source = gunzip ? req.pipe(gunzip) : req;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const fail = (error: Error): void => {
      source.removeAllListeners('data');
      source.on('error', () => {});
      if (gunzip) {
        req.unpipe(gunzip);
        req.resume();
      }
      reject(error);
    };
    source.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) fail(tooLarge(maxBytes));
      else if (gunzip && size > EXPANSION_FREE_BYTES && size > EXPANSION_MAX * gunzip.bytesWritten)
        fail(expandsTooMuch());
      else chunks.push(chunk);
    });
    source.on('end', () => resolve(joined(chunks, size)));
    source.on('error', (error) =>
      fail(
        gzip
          ? new PlatformError('REQUEST_MALFORMED', 'The body is not valid gzip.', { cause: error })
          : new ClientGone(),
      ),
    );
    req.on('error', () => fail(new ClientGone()));
    req.on('aborted', () => fail(new ClientGone()));
  });
}

interface Streaming {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly expectsContinue: boolean;
  readonly timeLimits: Pick<TimeLimits, 'idleMs'>;
}

const tooSlow = (): PlatformError => new PlatformError('REQUEST_MALFORMED', 'The request was not received in time.');

/**
 * The body as it arrives, read no faster than it is taken. Ends with an error when its client is gone, sends nothing or
 * too little for too long, or `signal` is aborted; the connection stays, so that it can be answered. Only time spent
 * waiting for the client counts: a slow store is not the client's fault.
 */
export async function* arrivingBytes(x: Streaming, signal: AbortSignal): AsyncGenerator<Buffer> {
  const { req, res, expectsContinue, timeLimits } = x;
  let failure: Error | null = null;
  let waiting: (() => void) | null = null;
  let waitedMs = 0;
  let bytes = 0;
  const goOn = (): void => waiting?.();
  const fail = (error: Error): void => {
    failure ??= error;
    goOn();
  };
  const gone = (): void => fail(new ClientGone());
  const idle = setTimeout(() => waiting && fail(tooSlow()), timeLimits.idleMs);
  const late = (): void => fail(tooSlow());
  signal.addEventListener('abort', late);
  req.on('readable', goOn).on('end', goOn).on('error', gone).on('aborted', gone);
  try {
    if (expectsContinue) res.writeContinue();
    for (;;) {
      if (failure) throw failure;
      const chunk: Buffer | null = req.read();
      if (chunk !== null) {
        bytes += chunk.length;
        if (bytes < ((waitedMs - timeLimits.idleMs) * LIMITS.streamed_body_min_bytes_per_second) / 1_000)
          throw tooSlow();
        yield chunk;
      } else if (req.readableEnded) return;
      else if (req.destroyed) throw new ClientGone();
      else {
        idle.refresh();
        const from = performance.now();
        await new Promise<void>((resolve) => {
          waiting = resolve;
        });
        waiting = null;
        waitedMs += performance.now() - from;
      }
    }
  } finally {
    clearTimeout(idle);
    signal.removeEventListener('abort', late);
    req.off('readable', goOn).off('end', goOn).off('aborted', gone);
  }
}

function joined(chunks: readonly Buffer[], size: number): Buffer | null {
  const [first] = chunks;
  if (!first || size === 0) return null;
  return chunks.length === 1 ? first : Buffer.concat(chunks, size);
}

/** The client closed the connection; no answer is possible. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** The largest body that is not streamed. */
const DISCARD_MAX_BYTES = 32 * 1024 * 1024;
const DISCARD_BYTES_PER_MS = 32 * 1024;

/** When the next part of a refused body may be read; in the time of performance.now(). */
let nextDiscard = 0;

/**
 * Reads and drops the rest of a body whose request has been answered, so that the client gets to read the answer: up to
 * a bound, and at a pace of all connections together that costs the others little. To be called before Node hears that
 * the answer is out, because it would read all that comes as fast as it comes.
 */
export function discardRest(req: IncomingMessage): void {
  let bytes = 0;
  const late = setTimeout(() => req.destroy(), LIMITS.request_timeout_ms).unref();
  req.once('close', () => clearTimeout(late));
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_MAX_BYTES) return void req.destroy();
    req.pause();
    const now = performance.now();
    nextDiscard = Math.max(nextDiscard, now) + chunk.length / DISCARD_BYTES_PER_MS;
    setTimeout(() => req.resume(), nextDiscard - now).unref();
  });
  // At once: from now on Node leaves the body to us.
  req.read();
}
