/**
 * One JSON line per request, never with tokens, query values or bodies: at level `error` about a 500, at `warn` about
 * what the platform could not do, at `info` about everything else. Lines are gathered and written together: a logger
 * call per request would cost more than the checks.
 */
import type { Exchange } from './exchange.ts';

const FLUSH_MS = 100;
const FLUSH_LINES = 500;
/** Lines in a second about requests that cost the caller nothing, and the disk is not endless; of each such status. */
const FREE_LINES_MAX = 50;
const SECOND_MS = 1_000;
/** Refused by a limit, and not carried out because something is away. */
const FREE = [429, 503] as const;

const INFO = 30;
const WARN = 40;
const ERROR = 50;
/** The lowest level of lines that are written, by LOG_LEVEL; without lines for those that are not here. */
const LOWEST: Readonly<Record<string, number>> = { trace: INFO, debug: INFO, info: INFO, warn: WARN, error: ERROR };

const levelOf = (status: number): number => (status < 500 ? INFO : status === 500 ? ERROR : WARN);

/** Requests of one status without a price: those of this second that have a line, and those beyond. */
class FreeLines {
  readonly status: number;
  since = 0;
  lines = 0;
  more = 0;

  constructor(status: number) {
    this.status = status;
  }

  get secondIsOver(): boolean {
    return performance.now() - this.since >= SECOND_MS;
  }
}

export class AccessLog {
  readonly #node: string;
  readonly #lowest: number;
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #timer: NodeJS.Timeout | null = null;
  readonly #free = FREE.map((status) => new FreeLines(status));

  /** `logLevel`: of LOG_LEVEL. */
  constructor(node: string, logLevel = 'info', write: (text: string) => void = (text) => process.stdout.write(text)) {
    this.#node = JSON.stringify(node);
    this.#lowest = LOWEST[logLevel] ?? Number.POSITIVE_INFINITY;
    this.#write = write;
  }

  add(x: Exchange, status: number, milliseconds: number, code: string | null): void {
    const level = levelOf(status);
    if (level < this.#lowest) return;
    const free = this.#free.find((one) => one.status === status);
    if (free && !this.#mayTell(free)) return;
    const { session, clientRequestId, traceparent } = x;
    const known = session
      ? `,"tenant":${JSON.stringify(session.tenantId)},"user":${JSON.stringify(session.userId)},"client":${JSON.stringify(session.clientId)}`
      : '';
    this.#lines.push(
      `{"level":${level},"time":${x.startedAt},"node":${this.#node},"mod":"GATEWAY","requestId":"${x.requestId}"` +
        `${traceparent ? `,"traceparent":"${traceparent}"` : ''}` +
        `${clientRequestId ? `,"clientRequestId":"${clientRequestId}"` : ''},"operationId":"${x.label}","method":"${x.method}"` +
        `,"status":${status},"ms":${milliseconds.toFixed(1)},"ip":${JSON.stringify(x.ip)}${known}${code ? `,"code":"${code}"` : ''},"msg":"request"}\n`,
    );
    if (this.#lines.length >= FLUSH_LINES) this.#writeLines();
    else this.#writeSoon();
  }

  /** Writes everything now, as before a stop. */
  flush(): void {
    for (const free of this.#free) this.#tellMore(free);
    this.#writeLines();
  }

  /** False for one beyond so many in this second; they are counted. */
  #mayTell(free: FreeLines): boolean {
    if (free.secondIsOver) {
      this.#tellMore(free);
      free.since = performance.now();
      free.lines = 0;
    }
    if (free.lines < FREE_LINES_MAX) {
      free.lines++;
      return true;
    }
    free.more++;
    this.#writeSoon();
    return false;
  }

  #tellMore(free: FreeLines): void {
    const { status, more } = free;
    if (more === 0) return;
    free.more = 0;
    const message = status === 429 ? 'more requests refused by limits' : 'more requests not carried out';
    this.#lines.push(
      `{"level":${WARN},"time":${Date.now()},"node":${this.#node},"mod":"GATEWAY","status":${status},"count":${more}` +
        `,"msg":"${message}"}\n`,
    );
  }

  #writeSoon(): void {
    this.#timer ??= setTimeout(() => {
      for (const free of this.#free) if (free.secondIsOver) this.#tellMore(free);
      this.#writeLines();
      if (this.#free.some(({ more }) => more > 0)) this.#writeSoon();
    }, FLUSH_MS).unref();
  }

  #writeLines(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#write(text);
  }
}
