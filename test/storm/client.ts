/**
 * A caller as the documents ask for one: it goes to a gateway that is ready, sends a mutation again with the same key until
 * the answer is final, waits as long as Retry-After says, and gets a new token when the old one is not taken any more.
 * Every answer is judged.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { signIn, type Tokens } from '../../scripts/sign-in.ts';
import { assertDescribed } from '../support/described.ts';
import type { Cluster, Member } from './cluster.ts';
import type { Faults } from './faults.ts';
import { isOverloaded } from './machine.ts';
import type { Violations } from './violations.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are what the checks ask of them
type Anything = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Anything;
}

export interface CallOptions {
  readonly key?: string;
  readonly etag?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The storm is over, and the client with it. */
export class Over extends Error {}

/** A caller does not wait longer for an answer; then it asks another gateway. */
const PATIENCE_MS = 12_000;
/** Failures are explained by faults that ended so long ago at most: processes find each other, pools and breakers recover. */
export const GRACE_MS = 15_000;
const PAUSES_MS = [50, 100, 200, 400, 800, 1_000];

/** State shared by all clients of a storm. */
export class Traffic {
  readonly cluster: Cluster;
  readonly faults: Faults;
  readonly violations: Violations;
  requests = 0;
  /** Failed attempts by what they were. */
  readonly failures = new Map<string, number>();
  /** Must not appear in the answers of the tenant, by tenant. */
  readonly foreign = new Map<string, string>();
  /** No answer will be waited for any more. */
  ended = false;
  /** Tokens that were given; none may be in a log. */
  readonly secrets = new Set<string>();
  /** Failed attempts without a fault on a machine that had far more to do than it can. */
  readonly overloaded: string[] = [];
  /** The longest time without a write that succeeded. */
  silence = 0;
  /** When a backup was put back: refresh tokens from before may have been given or exchanged after it was made. */
  restoredAt = Number.NEGATIVE_INFINITY;
  #succeeded = performance.now();

  readonly #note: (text: string) => void;

  constructor(cluster: Cluster, faults: Faults, violations: Violations, note: (text: string) => void) {
    this.#note = note;
    this.cluster = cluster;
    this.faults = faults;
    this.violations = violations;
  }

  wrote(): void {
    const now = performance.now();
    this.silence = Math.max(this.silence, now - this.#succeeded);
    this.#succeeded = now;
  }

  /** Time without writes does not count while none are sent. */
  restartSilence(): void {
    this.#succeeded = performance.now();
  }

  /**
   * An attempt that failed; without a fault that explains it, that is a violation. A connection breaks for what happened to
   * its own gateway alone.
   */
  failed(what: string, sent: number, detail: string, brokenAt?: Member): void {
    this.failures.set(what, (this.failures.get(what) ?? 0) + 1);
    this.#note(`${what}: ${detail}`);
    const cause = this.faults.around(sent, GRACE_MS, brokenAt?.name);
    if (cause) cause.lastFailure = performance.now();
    else if (isOverloaded()) this.overloaded.push(`${what}: ${detail}`);
    else
      this.violations.add({
        oracle: 'no failure without a fault',
        what: `${what} although nothing explains it in the ${GRACE_MS / 1_000} s before the request`,
        server: detail,
      });
  }
}

interface KeptTokens extends Tokens {
  readonly at: number;
}

export class Client {
  readonly username: string;
  readonly tenant: string;
  readonly #traffic: Traffic;
  #tokens: Promise<KeptTokens> | undefined;

  constructor(traffic: Traffic, username: string) {
    this.#traffic = traffic;
    this.username = username;
    this.tenant = username.split('@')[1]!.split('.')[0]!;
  }

  /** The final answer of a request; a mutation keeps its key however often it is sent. */
  async send(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> {
    const key = method === 'GET' ? undefined : (options.key ?? randomUUID());
    for (let attempt = 0; ; attempt++) {
      if (this.#traffic.ended) throw new Over(`${method} ${path} has no final answer (key ${key})`);
      const answer = await this.attempt(method, path, body, { ...options, ...(key ? { key } : {}) });
      if (answer && isFinal(answer)) {
        if (method !== 'GET' && answer.status < 300) this.#traffic.wrote();
        return answer;
      }
      const seconds = Number(answer?.headers.get('retry-after') ?? 0);
      await pause(Math.max(seconds * 1_000, PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)]!));
    }
  }

  get(path: string): Promise<Answer> {
    return this.send('GET', path);
  }

  /** One attempt; null when there was no answer. */
  async attempt(method: string, path: string, body: unknown, options: CallOptions): Promise<Answer | null> {
    const token = await this.token();
    const gateway = this.#traffic.cluster.gateway();
    const wasReady = gateway.ready;
    const sent = performance.now();
    this.#traffic.requests++;
    let answer: Answer;
    try {
      const response = await fetch(`http://127.0.0.1:${gateway.port}/api/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(options.key ? { 'idempotency-key': options.key } : {}),
          ...(options.etag ? { 'if-match': options.etag } : {}),
          ...options.headers,
        },
        signal: AbortSignal.timeout(PATIENCE_MS),
        ...(body === undefined ? {} : { body: body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.startsWith('application/json');
      answer = {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson && text ? JSON.parse(text) : text,
      };
    } catch (error) {
      const { name, cause } = error as Error & { cause?: { code?: string } };
      const late = name === 'TimeoutError';
      const what = late ? 'no answer in time' : `connection: ${cause?.code ?? name}`;
      gateway.ready = false;
      const detail = `${method} ${path} at ${gateway.name} after ${Math.round(performance.now() - sent)} ms: ${error}`;
      // Without a ready gateway, an unready one is used.
      this.#traffic.failed(what, sent, detail, late || !wasReady ? undefined : gateway);
      return null;
    }
    this.#judge(method, path, answer, gateway, sent);
    if (answer.status === 401) this.#tokens = undefined;
    return answer;
  }

  /** A token, by signing in when there is none that is good. */
  async token(): Promise<string> {
    for (let attempt = 0; ; attempt++) {
      if (this.#traffic.ended) throw new Over(`${this.username} could not sign in`);
      try {
        this.#tokens ??= this.#signIn();
        return (await this.#tokens).access_token;
      } catch (error) {
        this.#tokens = undefined;
        await pause(Math.max(500, PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)]!));
        if (attempt > 200) throw error;
      }
    }
  }

  /** A new token by the refresh token, or by another sign-in when that is not taken or was given after a backup. */
  async refresh(): Promise<void> {
    const tokens = await this.#tokens?.catch(() => undefined);
    const refresh_token = tokens && tokens.at > this.#traffic.restoredAt ? tokens.refresh_token : undefined;
    this.#tokens = refresh_token ? this.#exchange(refresh_token).catch(() => this.#signIn()) : this.#signIn();
    await this.token();
  }

  async #signIn(): Promise<KeptTokens> {
    const sent = performance.now();
    const { baseUrl, password } = this.#traffic.cluster;
    try {
      return this.#keep(await signIn({ baseUrl, user: this.username, password }));
    } catch (error) {
      this.#traffic.failed('sign-in', sent, `${this.username}: ${error}`);
      throw error;
    }
  }

  async #exchange(refreshToken: string): Promise<KeptTokens> {
    const sent = performance.now();
    try {
      const response = await fetch(`${this.#traffic.cluster.baseUrl}/oauth2/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token: refreshToken }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      const text = await response.text();
      if (response.status === 500)
        this.#traffic.violations.add({ oracle: 'no unexplained 5xx', what: 'a refreshed token', server: text });
      if (!response.ok) throw new Error(`${response.status} ${text.slice(0, 300)}`);
      return this.#keep(JSON.parse(text) as Tokens);
    } catch (error) {
      this.#traffic.failed('refresh', sent, `${this.username}: ${error}`);
      throw error;
    }
  }

  #keep(tokens: Tokens): KeptTokens {
    for (const secret of [tokens.access_token, tokens.refresh_token]) if (secret) this.#traffic.secrets.add(secret);
    return { ...tokens, at: performance.now() };
  }

  /** Answers that are never allowed, and those allowed only during faults. */
  #judge(method: string, path: string, answer: Answer, gateway: Member, sent: number): void {
    const { status, headers, text, body } = answer;
    const detail = `${method} ${path} at ${gateway.name}: ${status} ${headers.get('x-request-id')} ${text.slice(0, 600)}`;
    const violation = (oracle: string, what: string): void =>
      this.#traffic.violations.add({ oracle, what, server: detail });
    if (status >= 500 && status !== 503) violation('no unexplained 5xx', `${status} is no answer to a fault`);
    if (status === 503 && !headers.get('retry-after')) violation('no unexplained 5xx', '503 without Retry-After');
    if (status === 503 || status === 401) this.#traffic.failed(`${status} ${body?.code ?? ''}`.trim(), sent, detail);
    if (status === 429) this.#traffic.failed(`429 ${body?.code ?? ''}`.trim(), sent, detail);
    const foreign = this.#traffic.foreign.get(this.tenant);
    if (foreign && text.includes(foreign))
      violation('nothing of another tenant', 'an answer has what another tenant wrote');
    try {
      assertDescribed(method, path, status, body);
    } catch (error) {
      violation('answers are as described', (error as Error).message);
    }
  }
}

/** The same request may be sent again after what is not final. */
export const isFinal = ({ status, body }: Answer): boolean =>
  status < 500 && status !== 401 && status !== 429 && !(status >= 400 && body?.retryable === true);
