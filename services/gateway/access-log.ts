/**
 * One JSON line per request, never with tokens, query values or bodies. Lines are gathered and written together: a
 * logger call per request would cost more than the checks.
 */
import type { Exchange } from './exchange.ts';

const FLUSH_MS = 100;
const FLUSH_LINES = 500;

export class AccessLog {
  readonly #node: string;
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(node: string, write: (text: string) => void = (text) => process.stdout.write(text)) {
    this.#node = JSON.stringify(node);
    this.#write = write;
  }

  add(x: Exchange, status: number, milliseconds: number, code: string | null): void {
    const { session, clientRequestId } = x;
    const known = session
      ? `,"tenant":${JSON.stringify(session.tenantId)},"user":${JSON.stringify(session.userId)},"client":${JSON.stringify(session.clientId)}`
      : '';
    this.#lines.push(
      `{"level":30,"time":${x.startedAt},"node":${this.#node},"mod":"GATEWAY","requestId":"${x.requestId}"` +
        `${clientRequestId ? `,"clientRequestId":"${clientRequestId}"` : ''},"operationId":"${x.label}","method":"${x.method}"` +
        `,"status":${status},"ms":${milliseconds.toFixed(1)},"ip":${JSON.stringify(x.ip)}${known}${code ? `,"code":"${code}"` : ''},"msg":"request"}\n`,
    );
    if (this.#lines.length >= FLUSH_LINES) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS).unref();
  }

  flush(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#write(text);
  }
}
