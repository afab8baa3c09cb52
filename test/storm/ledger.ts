/**
 * The clients' ledger: every intention with its key and its final answer, and the resulting expected state. An
 * intention has one key, however often and through whichever gateway it is sent.
 */
import { randomUUID } from 'node:crypto';
import { type Answer, type CallOptions, type Client, isFinal } from './client.ts';
import type { Random } from './random.ts';
import type { Violations } from './violations.ts';

/** One intended mutation. */
interface Intention {
  readonly what: string;
  readonly client: Client;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly options: CallOptions & { readonly key: string };
  /** Statuses that it may end with. */
  readonly expected: readonly number[];
  /** The final one; null as long as there is none. */
  answer: Answer | null;
  /** Takes the outcome into the ledger. */
  readonly settle: (answer: Answer) => void;
}

/** A record of which one worker alone decides, so that what is stored is known exactly. */
export interface Kept {
  readonly id: string;
  readonly object: string;
  /** Of the user who works on it. */
  readonly tenant: string;
  version: number;
  etag: string;
  live: boolean;
  readonly fields: Record<string, unknown>;
}

/** An intention ended with an answer that nothing explains; its story does not go on. */
export class Unexpected extends Error {}

/** Of all intentions: sent twice at the same time, and given up by their client after one attempt. */
const TWICE = 0.06;
const ABANDONED = 0.02;

export class Ledger {
  readonly intentions: Intention[] = [];
  readonly records = new Map<string, Kept>();
  /** Times that a shared counter was raised, by the id of its record. */
  readonly counters = new Map<string, number>();
  /** Order lines by their order, with their amounts. */
  readonly lines = new Map<string, Map<string, number>>();
  /** Fields and rules by name: whether their deployment succeeded. */
  readonly deployed = new Map<string, boolean>();
  /** Files by their ids, with the record that each is attached to. */
  readonly files = new Map<string, { readonly recordId: string; readonly sha256: string }>();
  readonly #random: Random;
  readonly #violations: Violations;

  constructor(random: Random, violations: Violations) {
    this.#random = random;
    this.#violations = violations;
  }

  /** Carries a mutation out, some of them twice at the same time. Throws when it ends unexpectedly. */
  async carryOut(
    client: Client,
    what: string,
    request: { method: string; path: string; body?: unknown; options?: CallOptions; expected: readonly number[] },
    settle: (answer: Answer) => void = () => {},
  ): Promise<Answer> {
    const intention = this.#note(client, what, request, settle);
    const copies = this.#random.chance(TWICE) ? 2 : 1;
    const answers = await Promise.all(Array.from({ length: copies }, () => this.#send(intention)));
    const [answer, other] = answers as [Answer, Answer | undefined];
    if (other && answer.status < 300 && other.text !== answer.text)
      this.#violations.add({
        oracle: 'exactly once',
        what: `${what}: two requests with the key ${intention.options.key} have different answers`,
        ledger: answer.text,
        server: other.text,
      });
    return this.#settled(intention, answer);
  }

  /** As `carryOut`, by a client that sometimes is gone before it has an answer: then null, and `resolve` asks for it. */
  async tryOut(...given: Parameters<Ledger['carryOut']>): Promise<Answer | null> {
    if (!this.#random.chance(ABANDONED)) return this.carryOut(...given);
    const [client, what, request, settle = () => {}] = given;
    const intention = this.#note(client, what, request, settle);
    await client.attempt(intention.method, intention.path, intention.body, intention.options);
    return null;
  }

  /** Takes a snapshot; the returned function restores it. No request may be in flight. */
  snapshot(): () => void {
    const { records, counters, lines, deployed, files } = this;
    const [length, before] = [this.intentions.length, structuredClone({ records, counters, lines, deployed, files })];
    return () => {
      this.intentions.length = length;
      refill(records, before.records);
      refill(counters, before.counters);
      refill(lines, before.lines);
      refill(deployed, before.deployed);
      refill(files, before.files);
    };
  }

  /** Asks for the outcome of every intention that has none, by its key. */
  async resolve(): Promise<number> {
    const open = this.intentions.filter(({ answer }) => answer === null);
    for (const intention of open)
      await this.#send(intention)
        .then((answer) => this.#settled(intention, answer))
        .catch((error: Error) =>
          this.#violations.add({
            oracle: 'every mutation has an outcome',
            what: `${intention.what} (key ${intention.options.key}): ${error.message}`,
          }),
        );
    return open.length;
  }

  /** Sends intentions that succeeded once more: each must answer what it answered. */
  async sendAgain(most: number): Promise<number> {
    const done = this.intentions.filter(({ answer }) => answer && answer.status < 300);
    const step = Math.max(1, Math.floor(done.length / most));
    const chosen = done.filter((_, i) => i % step === 0);
    for (const intention of chosen) {
      const { what, client, method, path, body, options, answer } = intention;
      const again = await client.send(method, path, body, options);
      const replayed = again.headers.get('idempotency-replayed') === 'true';
      if (again.status !== answer!.status || again.text !== answer!.text || !replayed)
        this.#violations.add({
          oracle: 'exactly once',
          what: `${what}, sent once more with the key ${options.key}, has another answer`,
          ledger: `${answer!.status} ${answer!.headers.get('x-request-id')} ${answer!.text}`,
          server: `${again.status} ${again.headers.get('x-request-id')} replayed: ${replayed} ${again.text}`,
        });
    }
    return chosen.length;
  }

  #note(
    client: Client,
    what: string,
    request: { method: string; path: string; body?: unknown; options?: CallOptions; expected: readonly number[] },
    settle: (answer: Answer) => void,
  ): Intention {
    const { method, path, body, expected } = request;
    const options = { ...request.options, key: randomUUID() };
    const intention = { what, client, method, path, body, options, expected, answer: null, settle };
    this.intentions.push(intention);
    return intention;
  }

  #send({ client, method, path, body, options }: Intention): Promise<Answer> {
    return client.send(method, path, body, options);
  }

  #settled(intention: Intention, answer: Answer): Answer {
    const { what, expected, options, method, path } = intention;
    intention.answer = answer;
    if (isFinal(answer) && expected.includes(answer.status)) {
      intention.settle(answer);
      return answer;
    }
    const said = `${answer.status} ${answer.headers.get('x-request-id')} ${answer.text.slice(0, 600)}`;
    this.#violations.add({
      oracle: 'every mutation has its outcome',
      what: `${what}: ${method} ${path} with the key ${options.key}`,
      ledger: `expected ${expected.join(' or ')}`,
      server: said,
    });
    throw new Unexpected(said);
  }
}

function refill<Key, Value>(map: Map<Key, Value>, from: ReadonlyMap<Key, Value>): void {
  map.clear();
  for (const [key, value] of from) map.set(key, value);
}
