/**
 * Counts the calls that a process answers, by action: those of other processes and of its own services alike. Plain
 * numbers, as those of services/gateway/edge/answered.ts. Source: docs/reference/metrics.md, "Every process".
 */
import { Errors } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { middleware } from '../moleculer.ts';
import { Durations } from './durations.ts';
import type { Metrics, Sample } from './metrics.ts';

/** Fewer than those of HTTP: there are more actions than operations. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

/** `refused`: an answer below 500, which the caller can do something about; `failed`: everything else. */
type Outcome = 'ok' | 'refused' | 'failed';

interface Calls {
  readonly labels: Readonly<Record<'service' | 'action', string>>;
  readonly outcomes: Record<Outcome, number>;
  readonly durations: Durations;
}

interface ActionOf {
  readonly name: string;
}

export class ActionCalls {
  readonly #calls: Calls[] = [];

  /** Of a broker. Actions that exist are wrapped and nothing else, so that no caller makes a label. */
  readonly middleware = middleware({
    name: 'ActionCalls',
    localAction: (next: (ctx: unknown) => Promise<unknown>, { name }: ActionOf) => {
      const calls = callsOf(name);
      const { outcomes, durations } = calls;
      this.#calls.push(calls);
      return (ctx: unknown) => {
        const began = performance.now();
        const answered = next(ctx);
        const end = (outcome: Outcome): void => {
          outcomes[outcome]++;
          durations.observe((performance.now() - began) / 1_000);
        };
        answered.then(
          () => end('ok'),
          (error) => end(outcomeOf(error)),
        );
        return answered;
      };
    },
  });

  register(metrics: Metrics): void {
    const called = (): Calls[] => this.#calls.filter(({ durations }) => durations.count > 0);
    metrics.counters(
      'erp_action_calls_total',
      'Calls of actions that this process answered, by outcome.',
      ['service', 'action', 'outcome'],
      () => called().flatMap(samplesOf),
    );
    metrics.durations('erp_action_duration_seconds', 'Time to answer a call of an action.', ['service', 'action'], () =>
      called().map(({ labels, durations }) => [labels, durations]),
    );
  }
}

const callsOf = (action: string): Calls => ({
  labels: { service: action.slice(0, action.indexOf('.')), action },
  outcomes: { ok: 0, refused: 0, failed: 0 },
  durations: new Durations(BUCKETS_SECONDS),
});

function outcomeOf(error: unknown): Outcome {
  if (error instanceof PlatformError) return error.status < 500 ? 'refused' : 'failed';
  return error instanceof Errors.MoleculerClientError ? 'refused' : 'failed';
}

const samplesOf = ({ labels, outcomes }: Calls): Sample[] =>
  Object.entries(outcomes).map(([outcome, count]) => [{ ...labels, outcome }, count]);
