/**
 * The order in which a process ends, so that no caller loses an answer: not ready, and known to leave;
 * some time in which all is still answered; nothing new; what is under way; then the bus.
 * Source: docs/reference/operations-cluster.md.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Context, ServiceBroker } from 'moleculer';
import { announceLeaving } from './bus/leaving.ts';
import { endsBefore } from './ends-before.ts';
import type { HealthServer } from './health.ts';
import type { Jobs } from './jobs/jobs.ts';
import { trackedContexts } from './moleculer.ts';

export interface ShutdownTimes {
  /** For load balancers to notice; requests are still answered. */
  readonly graceMs: number;
  /** For other processes to notice; calls are still answered. */
  readonly noticeMs: number;
  /** From the signal to the end of the process. */
  readonly totalMs: number;
}

export const AT_ONCE: ShutdownTimes = { graceMs: 0, noticeMs: 0, totalMs: 10_000 };

/** Of the whole time, what is kept for each step behind the requests: together less than SHUTDOWN_RESERVE_SECONDS. */
const AFTER_REQUESTS_MS = 3_000;
const AFTER_JOBS_MS = 2_500;
const AFTER_CALLS_MS = 2_000;
/** Work that was waited for already gets no second time limit. */
const SERVICES_MS = 200;
const LOOK_MS = 20;
const NAMED_MAX = 20;

/** The service that listens for callers. */
export interface Edge {
  /** Not ready any more; requests are answered, and each answer closes its connection. */
  leave(): void;
  /** Nothing new is taken; resolves when what is under way has been answered, or at `until`. */
  drain(until: number): Promise<void>;
}

interface Parts {
  readonly broker: ServiceBroker;
  readonly jobs: Jobs;
  readonly health: HealthServer | undefined;
  readonly edge: Edge | undefined;
  readonly onBus: boolean;
  /** Told what is being waited for. */
  readonly step: (name: string) => void;
}

/**
 * Ends all that works for others; a step that fails does not keep the next ones from being taken. The databases are
 * closed by the caller, afterwards.
 */
export async function endWork(
  { broker, jobs, health, edge, onBus, step }: Parts,
  { graceMs, noticeMs, totalMs }: ShutdownTimes,
): Promise<void> {
  const end = performance.now() + totalMs;
  const failures: unknown[] = [];
  const attempt = (work: PromiseLike<void> | undefined): Promise<void> =>
    Promise.resolve(work).catch((error) => void failures.push(error));
  step('other processes and load balancers to notice');
  health?.drain();
  edge?.leave();
  const jobsEnded = attempt(jobs.leave());
  await attempt(announceLeaving(broker));
  const noticed = Math.max(edge ? graceMs : 0, onBus ? noticeMs : 0);
  if (noticed > 0) await pause(noticed);
  step('requests');
  await attempt(edge?.drain(end - AFTER_REQUESTS_MS));
  step('jobs');
  if (!(await endsBefore(jobsEnded, end - AFTER_JOBS_MS)))
    broker.logger.warn('Jobs did not finish within the shutdown timeout; another process will start them again.');
  step('calls of other processes');
  await callsEnd(broker, end - AFTER_CALLS_MS);
  step('the services to stop');
  Object.assign(broker.options.tracking ?? {}, { shutdownTimeout: SERVICES_MS });
  await attempt(broker.stop());
  step('the job queue to close');
  // They were waited for already.
  await attempt(jobs.stop(0));
  await attempt(health?.close());
  if (failures.length > 0) throw failures[0];
}

/** Waits until no call is under way in this process, up to a limit; what is left then is named in the log. */
async function callsEnd(broker: ServiceBroker, until: number): Promise<void> {
  const running = (): Context[] => [broker, ...broker.services].flatMap(trackedContexts);
  while (running().length > 0 && performance.now() < until) await pause(LOOK_MS);
  const left = running();
  if (left.length === 0) return;
  const calls = left.slice(0, NAMED_MAX).map(({ action, eventName }) => action?.name ?? eventName ?? 'unknown');
  broker.logger.warn({ count: left.length, calls }, 'Aborted calls that did not finish within the shutdown timeout.');
}
