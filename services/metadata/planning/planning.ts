/**
 * Threads that read and plan configuration, so that nothing of it holds up the requests of others. A task that takes
 * too long or too much memory ends with its thread; how many tasks of a tenant run and wait is bounded.
 * docs/decisions/planning-in-threads.md says why.
 */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { codeOf } from '../../../lib/errors/thrown.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { currentUse } from '../../../mixins/database/use.ts';
import { TenantQueue } from '../../../mixins/tenant-queue.ts';
import type { Door, Progress, TASKS, TaskName } from './tasks.ts';
import type { Begun, Errand, Outcome, Question, Reached } from './thread.ts';

export interface PlanningLimits {
  readonly threads: number;
  /** Processor time of one task: a busy machine takes longer, and does not make a project larger. */
  readonly processorMs: number;
  /** A task that no request waits for. */
  readonly taskMs: number;
  /** How long a task waits for its turn. */
  readonly waitMs: number;
  /**
   * Heap that one thread may have: several times what the largest project takes. What allocates in a loop ends with its
   * thread there; one call of V8 that goes far beyond, such as JSON.parse, would end the process, so that sizes are
   * bounded before.
   */
  readonly memoryMb: number;
}

const DEFAULTS: PlanningLimits = {
  threads: Math.min(4, Math.max(2, availableParallelism() - 1)),
  processorMs: LIMITS.planning_task_processor_ms,
  taskMs: 120_000,
  waitMs: LIMITS.turn_wait_ms,
  memoryMb: 1_024,
};

/** Of a request, kept for what comes after the planning. */
const RESERVE_MS = 2_000;
/** How often the processor time of a running task is read. */
const LOOK_MS = 250;

const WAITING_PER_TENANT_MAX = 20;
const WAITING_MAX = 200;
/** An idle thread ends after this time. */
const IDLE_MS = 10 * 60_000;

type Input<T extends TaskName> = Parameters<(typeof TASKS)[T]>[0];
type Result<T extends TaskName> = Awaited<ReturnType<(typeof TASKS)[T]>>;

interface PlanningOptions {
  /** Answers what the task asks for. */
  readonly door?: Door;
  /** It goes before what else the tenant wants, and is never refused. */
  readonly first?: boolean;
  /** Aborted: the result is no longer needed; `run` throws the reason. */
  readonly signal?: AbortSignal;
  readonly progress?: Progress;
}

export class Planning {
  readonly #limits: PlanningLimits;
  readonly #queue: TenantQueue;
  #pool: Piscina | null = null;

  constructor(limits: Partial<PlanningLimits> = {}) {
    this.#limits = { ...DEFAULTS, ...limits };
    this.#queue = new TenantQueue({
      places: this.#limits.threads,
      waitingPerTenant: WAITING_PER_TENANT_MAX,
      waiting: WAITING_MAX,
      waitMs: this.#limits.waitMs,
    });
  }

  /**
   * Runs a task of a tenant. Throws what the task refuses; 413 TOO_MANY_ITEMS when it takes too much processor time or
   * memory, 429 or 503 when too many wait, or the machine is too busy to do it while the request can be answered.
   */
  run<T extends TaskName>(
    tenantId: string,
    task: T,
    input: Input<T>,
    options: PlanningOptions = {},
  ): Promise<Result<T>> {
    const { first = false, signal } = options;
    const running = this.#queue.run(tenantId, () => this.#run(task, input, options), { first });
    return signal ? untilAborted(running, signal) : running;
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    await this.#pool?.destroy();
    this.#pool = null;
  }

  async #run<T extends TaskName>(
    task: T,
    input: Input<T>,
    { door, signal, progress }: PlanningOptions,
  ): Promise<Result<T>> {
    signal?.throwIfAborted();
    const { port1, port2 } = new MessageChannel();
    const given = new AbortController();
    const abort = (): void => given.abort();
    signal?.addEventListener('abort', abort);
    let ended: 'late' | 'excessive' | null = null;
    const end = (why: 'late' | 'excessive'): void => {
      ended ??= why;
      given.abort();
    };
    const timer = setTimeout(end, this.#remainingMs(), 'late');
    let watch: NodeJS.Timeout | undefined;
    let failed: (error: unknown) => void = () => {};
    const unanswered = new Promise<never>((_resolve, reject) => {
      failed = reject;
    });
    port1.on('message', (question: Question | Reached | Begun) => {
      if (typeof question === 'object' && 'done' in question) return progress?.(question.done, question.total);
      if (typeof question === 'object' && 'threadId' in question) {
        watch = setInterval(() => void this.#exceeds(question).then((yes) => yes && end('excessive')), LOOK_MS);
        return;
      }
      answerOf(door, question)?.then(
        (answer) => port1.postMessage(answer),
        (error: unknown) => {
          failed(error);
          // It waits for an answer that will not come.
          given.abort();
        },
      );
    });
    try {
      const errand: Errand = { task, input, port: port2 };
      const running = this.#threads().run(errand, { transferList: [port2], signal: given.signal });
      running.catch(() => {});
      const outcome: Outcome = await Promise.race([running, unanswered]);
      if ('refused' in outcome) throw PlatformError.fromWire(outcome.refused);
      return outcome.value as Result<T>;
    } catch (error) {
      throw this.#excess(error, ended) ?? error;
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
      signal?.removeEventListener('abort', abort);
      port1.close();
    }
  }

  /** While a request waits for the task: until shortly before the request has to be answered. */
  #remainingMs(): number {
    const use = currentUse();
    if (!use) return this.#limits.taskMs;
    return Math.max(0, use.deadline - platformTime() - RESERVE_MS);
  }

  /** True when the task has exceeded its processor time. The thread itself is too busy to check. */
  async #exceeds({ threadId, processorMs }: Begun): Promise<boolean> {
    const thread = this.#pool?.threads.find((one) => one.threadId === threadId);
    const used = await thread?.cpuUsage().catch(() => null);
    return used ? (used.user + used.system) / 1_000 - processorMs > this.#limits.processorMs : false;
  }

  /** Error of a task whose thread was ended. */
  #excess(error: unknown, ended: 'late' | 'excessive' | null): PlatformError | null {
    const { processorMs, memoryMb } = this.#limits;
    if (ended === 'excessive')
      return tooMuch(`${processorMs / 1_000} s of processor time`, { maxSeconds: processorMs / 1_000 }, error);
    if (ended === 'late')
      return new PlatformError('SERVICE_UNAVAILABLE', 'The configuration was not checked in time. Try again.', {
        retryAfterSeconds: 5,
        cause: error,
      });
    return codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY'
      ? tooMuch(`${memoryMb} MB of memory`, { maxMb: memoryMb }, error)
      : null;
  }

  /** Started on first use: a process without deployments has none. */
  #threads(): Piscina {
    this.#pool ??= new Piscina({
      filename: fileURLToPath(new URL('./thread.ts', import.meta.url)),
      minThreads: 0,
      maxThreads: this.#limits.threads,
      idleTimeout: IDLE_MS,
      // On few cores, the thread that answers requests takes precedence; on a busy machine a third of a share is left.
      niceIncrement: 5,
      // A thread that blocks on a shared counter hears nothing from its port.
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.memoryMb },
    });
    return this.#pool;
  }
}

function answerOf(door: Door | undefined, question: Question): Promise<unknown> | undefined {
  if (typeof question !== 'string')
    return 'since' in question ? door?.unchangedSince(question.since, question.components) : door?.rows(question);
  return question === 'domains' ? (door?.domains?.() ?? Promise.resolve(null)) : door?.[question]();
}

/** The result of `work`, unless the signal comes first; its turn may still be to come. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {});
  signal.throwIfAborted();
  const done = new AbortController();
  try {
    return await Promise.race([work, once(signal, 'abort', done).then(() => Promise.reject(signal.reason))]);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    done.abort();
  }
}

const tooMuch = (what: string, details: Record<string, number>, cause: unknown): PlatformError =>
  new PlatformError(
    'TOO_MANY_ITEMS',
    `Checking the configuration takes more than ${what}. Deploy it in smaller parts.`,
    {
      details,
      cause,
    },
  );
