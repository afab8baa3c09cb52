/** The program of a planning thread: runs one task, and asks for what it needs through the port that comes with it. */
import { once } from 'node:events';
import { type MessagePort, threadId } from 'node:worker_threads';
import { PlatformError, type PlatformErrorWire } from '../../../lib/errors/platform-error.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { ComponentName } from '../deployments/unchanged.sql.ts';
import type { StoredState } from '../stored-state.ts';
import { type Door, type Progress, TASKS, type TaskName } from './tasks.ts';

export interface Errand {
  readonly task: TaskName;
  readonly input: unknown;
  readonly port: MessagePort;
}

/** Outcome of a task; errors of the catalogue are not cloned between threads by themselves. */
export type Outcome = { readonly value: unknown } | { readonly refused: PlatformErrorWire };

export default async function run({ task, input, port }: Errand): Promise<Outcome> {
  const { user, system } = process.threadCpuUsage();
  port.postMessage({ threadId, processorMs: (user + system) / 1_000 } satisfies Begun);
  try {
    const work = TASKS[task] as (given: unknown, door: Door, progress: Progress) => unknown;
    return { value: await work(input, doorOf(port), reporterOf(port)) };
  } catch (error) {
    if (error instanceof PlatformError) return { refused: error.toWire() };
    throw error;
  } finally {
    port.close();
  }
}

/** The thread that has begun the task, and the processor time that it had taken before. */
export interface Begun {
  readonly threadId: number;
  readonly processorMs: number;
}

/** A thread's request through its port; one at a time. */
export type Question = 'state' | 'retained' | 'domains' | Statement | UnchangedSince;

export interface UnchangedSince {
  readonly since: number;
  readonly components: readonly ComponentName[];
}

/** Progress of a task; needs no answer. */
export interface Reached {
  readonly done: number;
  readonly total: number;
}

const REPORT_MS = 100;

const reporterOf = (port: MessagePort): Progress => {
  let last = 0;
  return (done, total) => {
    const now = performance.now();
    if (now - last < REPORT_MS) return;
    last = now;
    port.postMessage({ done, total } satisfies Reached);
  };
};

const doorOf = (port: MessagePort): Door => {
  const ask = async <T>(question: Question): Promise<T> => {
    port.postMessage(question);
    const [answer] = await once(port, 'message');
    return answer;
  };
  return {
    state: () => ask<StoredState>('state'),
    retained: () => ask<string>('retained'),
    domains: () => ask<readonly string[] | null>('domains'),
    unchangedSince: (since, components) => ask<readonly ComponentName[]>({ since, components }),
    rows: ({ text, values = [] }) => ask<unknown[]>({ text, values }),
  };
};
