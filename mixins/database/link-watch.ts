/**
 * Detects a link to the database on which nothing comes back although it looks open: a half-open connection, a firewall
 * that dropped its state, a server that is stopped. TCP reports it after minutes; without this check each statement would
 * wait that long. Connections that are in use and silent are a suspicion only, since a statement may take its time. A
 * sign-in that gets no answer either confirms it. Source: docs/reference/reliability.md#a-database-that-does-not-answer.
 */
import { setTimeout as pause } from 'node:timers/promises';

const LOOK_MS = 250;
const SILENT_MS = 1_500;
/** Time limit of the sign-in that decides. */
const SIGN_IN_MS = 2_000;
/** Interval of the sign-ins while the server answers them, or the link is known to be silent. */
const AGAIN_MS = 1_000;
/** A timer that is this late shows that this process was stopped or busy: answers may lie unread. */
const BUSY_MS = 400;

interface Link {
  /** True while a request may be waiting for an answer. */
  inUse(): boolean;
  /** Bytes received on all open connections. */
  received(): number;
  /** Signs in on a new connection; false: no answer within the time limit. */
  signIn(limitMs: number): Promise<boolean>;
  /** The link became silent, or works again. */
  changed(silent: boolean): Promise<void>;
}

export class LinkWatch {
  readonly #link: Link;
  readonly #timer: NodeJS.Timeout;
  #silent = false;
  #deciding = false;
  #lookedAt = performance.now();
  #lateAt = Number.NEGATIVE_INFINITY;
  #heardAt = performance.now();
  #received = 0;

  constructor(link: Link) {
    this.#link = link;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  get silent(): boolean {
    return this.#silent;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    if (now - this.#lookedAt > LOOK_MS + BUSY_MS) this.#lateAt = this.#heardAt = now;
    this.#lookedAt = now;
    const received = this.#link.received();
    // Fewer: a connection was closed.
    if (received > this.#received || !this.#link.inUse()) this.#heardAt = now;
    this.#received = received;
    if (!this.#deciding && (this.#silent || now - this.#heardAt > SILENT_MS)) void this.#decide();
  }

  async #decide(): Promise<void> {
    this.#deciding = true;
    const began = performance.now();
    try {
      const answered = await this.#link.signIn(SIGN_IN_MS);
      if (answered === this.#silent && (answered || (this.#heardAt < began && this.#lateAt < began))) {
        this.#silent = !answered;
        this.#heardAt = performance.now();
        await this.#link.changed(this.#silent);
      }
      await pause(AGAIN_MS, undefined, { ref: false });
    } finally {
      this.#deciding = false;
    }
  }
}
