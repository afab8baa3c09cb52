/**
 * One JSON line per request, never with tokens, query values or bodies. Lines are gathered and written together: a
 * logger call per request would cost more than the checks.
 */
import type { Exchange } from './exchange.ts';

const FLUSH_MS = 100;
const FLUSH_LINES = 500;
/** Lines in a second about requests that a limit refused: they cost the caller nothing, and the disk is not endless. */
const REFUSED_LINES_MAX = 50;
const SECOND_MS = 1_000;
const REFUSED = 429;

export class AccessLog {
  readonly #node: string;
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** Refusals of this second with a line, and those beyond. */
  readonly #refused = { since: 0, lines: 0, more: 0 };

  constructor(node: string, write: (text: string) => void = (text) => process.stdout.write(text)) {
    this.#node = JSON.stringify(node);
    this.#write = write;
  }

  add(x: Exchange, status: number, milliseconds: number, code: string | null): void {
    if (status === REFUSED && !this.#mayTellRefused()) return;
    const { session, clientRequestId } = x;
    const known = session
      ? `,"tenant":${JSON.stringify(session.tenantId)},"user":${JSON.stringify(session.userId)},"client":${JSON.stringify(session.clientId)}`
      : '';
    this.#lines.push(
      `{"level":30,"time":${x.startedAt},"node":${this.#node},"mod":"GATEWAY","requestId":"${x.requestId}"` +
        `${clientRequestId ? `,"clientRequestId":"${clientRequestId}"` : ''},"operationId":"${x.label}","method":"${x.method}"` +
        `,"status":${status},"ms":${milliseconds.toFixed(1)},"ip":${JSON.stringify(x.ip)}${known}${code ? `,"code":"${code}"` : ''},"msg":"request"}\n`,
    );
    if (this.#lines.length >= FLUSH_LINES) this.#writeLines();
    else this.#writeSoon();
  }

  /** Writes everything now, as before a stop. */
  flush(): void {
    this.#tellMore();
    this.#writeLines();
  }

  /** False for a refusal beyond so many in this second; they are counted. */
  #mayTellRefused(): boolean {
    const refused = this.#refused;
    if (this.#secondIsOver()) {
      this.#tellMore();
      refused.since = performance.now();
      refused.lines = 0;
    }
    if (refused.lines < REFUSED_LINES_MAX) {
      refused.lines++;
      return true;
    }
    refused.more++;
    this.#writeSoon();
    return false;
  }

  #secondIsOver(): boolean {
    return performance.now() - this.#refused.since >= SECOND_MS;
  }

  #tellMore(): void {
    const { more } = this.#refused;
    if (more === 0) return;
    this.#refused.more = 0;
    this.#lines.push(
      `{"level":40,"time":${Date.now()},"node":${this.#node},"mod":"GATEWAY","status":${REFUSED},"count":${more}` +
        `,"msg":"more requests refused by limits"}\n`,
    );
  }

  #writeSoon(): void {
    this.#timer ??= setTimeout(() => {
      if (this.#secondIsOver()) this.#tellMore();
      this.#writeLines();
      if (this.#refused.more > 0) this.#writeSoon();
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
