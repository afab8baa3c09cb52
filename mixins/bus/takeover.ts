/**
 * A call whose process was lost is repeated on another one, unseen by its caller: when it never arrived, or when it may
 * be carried out twice, as reads and mutations with an idempotency key may. Repeats are few and bounded, so that they
 * cannot bring down what is left. Reasons: docs/decisions/takeover.md.
 */
import { Errors, type Middleware, type ServiceBroker } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isObject } from '../../lib/json/objects.ts';
import { LIMITS } from '../../lib/limits.ts';
import { middleware } from '../moleculer.ts';

/** A call that NATS could not deliver: it was not executed. */
export class CallUndelivered extends Errors.ServiceNotAvailableError {}

/** How repeats ended: `answered` by a process, `lost` again, or not made: `over_budget`, `too_late`. */
type RepeatOutcome = 'answered' | 'lost' | 'over_budget' | 'too_late';

interface Options {
  timeout?: number;
  nodeID?: string;
  ctx?: unknown;
}

interface Called {
  readonly id: string;
  readonly nodeID?: string | null;
}

type Answer = Promise<unknown> & { ctx?: Called };
type Call = (action: string, params: unknown, options?: Options) => Answer;

const REPEATS_MAX = 2;
/** A repeat with less time than this would only be given up. */
const TIME_MIN_MS = 100;
const SHARE = 0.1;
const WINDOW_MS = 10_000;
const RESERVE_PER_SECOND = 10;

/**
 * Repeats that may be made: a tenth of the calls of about the last ten seconds, and ten a second where there are few.
 */
export class RepeatBudget {
  readonly #now: () => number;
  #calls = 0;
  #repeats = 0;
  #at: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#at = now();
  }

  noteCall(): void {
    this.#fade();
    this.#calls++;
  }

  /** Takes one repeat; false: the budget is used up. */
  take(): boolean {
    this.#fade();
    if (this.#repeats >= Math.max(this.#calls * SHARE, RESERVE_PER_SECOND * (WINDOW_MS / 1_000))) return false;
    this.#repeats++;
    return true;
  }

  /** Old numbers fade, which takes less than to keep them by second: those of half the window to all of it are left. */
  #fade(): void {
    const now = this.#now();
    const elapsed = now - this.#at;
    if (elapsed <= WINDOW_MS / 2) return;
    const kept = elapsed > WINDOW_MS ? 0 : 0.5;
    this.#calls *= kept;
    this.#repeats *= kept;
    this.#at = now;
  }
}

const counts = new WeakMap<ServiceBroker, Record<RepeatOutcome, number>>();

/** Outcomes of this process's calls whose first receiver was lost. */
export function repeats(broker: ServiceBroker): Record<RepeatOutcome, number> {
  let count = counts.get(broker);
  if (!count) counts.set(broker, (count = { answered: 0, lost: 0, over_budget: 0, too_late: 0 }));
  return count;
}

/** `undelivered` or `lost` for a call without an answer; null: it has one. */
function fateOf(error: unknown, action: string, answer: Answer): 'undelivered' | 'lost' | null {
  if (error instanceof CallUndelivered) return 'undelivered';
  if (!(error instanceof Errors.RequestRejectedError)) return null;
  // A process that lost another one itself answers the same error, about that other call.
  const { action: lost, nodeID }: Record<string, unknown> = isObject(error.data) ? error.data : {};
  return lost === action && nodeID === answer.ctx?.nodeID ? 'lost' : null;
}

/** A repeat waits for the transaction of the lost process in the database, which may take longer than it waits there. */
const isInProgress = (error: unknown): boolean =>
  error instanceof PlatformError && error.code === 'IDEMPOTENCY_IN_PROGRESS';

/** Middleware of a broker on a bus. `repeatable`: the call may be carried out again when its first fate is unknown. */
export function takeover(repeatable: (action: string, params: unknown) => boolean): Middleware {
  const budget = new RepeatBudget();

  async function again(
    broker: ServiceBroker,
    next: Call,
    { action, params, options }: { action: string; params: unknown; options: Options },
    failed: { error: unknown; answer: Answer; began: number },
    answered: Answer,
  ): Promise<unknown> {
    const count = repeats(broker);
    const timeout = options.timeout ?? LIMITS.request_timeout_ms;
    let { error, answer } = failed;
    for (let repeat = 1; ; repeat++) {
      const fate = fateOf(error, action, answer);
      if (repeat > 1) count[fate ? 'lost' : 'answered']++;
      const may = fate === 'undelivered' || (fate === 'lost' && repeatable(action, params));
      if (!(may || (repeat > 1 && isInProgress(error))) || repeat > REPEATS_MAX) throw error;
      const left = timeout - (performance.now() - failed.began);
      const refusal = left < TIME_MIN_MS ? 'too_late' : budget.take() ? null : 'over_budget';
      if (refusal) {
        count[refusal]++;
        throw error;
      }
      answer = next(action, params, { ...options, timeout: left });
      // No other node offers the action.
      if (!answer.ctx) {
        answer.catch(() => {});
        count.lost++;
        throw error;
      }
      answered.ctx = answer.ctx;
      try {
        const value = await answer;
        count.answered++;
        return value;
      } catch (failure) {
        error = failure;
      }
    }
  }

  let broker: ServiceBroker;
  return middleware({
    name: 'Takeover',
    created(created: ServiceBroker) {
      broker = created;
    },
    call(next: Call) {
      return function call(this: unknown, action: string, params: unknown, options: Options = {}): Answer {
        const began = performance.now();
        const answer = next(action, params, options);
        const node = answer.ctx?.nodeID;
        // One that names its node asks for that node's own state.
        if (!node || node === broker.nodeID || options.nodeID !== undefined || options.ctx) return answer;
        budget.noteCall();
        const answered: Answer = answer.catch((error: unknown) =>
          fateOf(error, action, answer)
            ? again(broker, next, { action, params, options }, { error, answer, began }, answered)
            : Promise.reject(error),
        );
        if (answer.ctx) answered.ctx = answer.ctx;
        return answered;
      };
    },
  });
}
