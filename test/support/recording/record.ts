/** The examples of all operations, recorded from a platform of its own. */
import type { Exchange, RecordedExample } from '../../../contracts/examples.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { startPlatform } from '../platform.ts';
import { type Recorded, Recorder } from './recorder.ts';
import { shorten } from './shorten.ts';
import { Stable } from './stable.ts';
import { tour } from './tour.ts';

type Examples = Record<string, RecordedExample>;

export interface Recording {
  readonly calls: readonly Recorded[];
  /** By the name of their file, without `.json`. */
  readonly files: ReadonlyMap<string, Examples>;
}

/** Rates as a deployment has them that sets none. */
const DEFAULT_RATES = {
  RATE_CONNECTION_UNITS: '3000',
  RATE_TENANT_UNITS: '30000',
  RATE_ANONYMOUS_REQUESTS: '300',
  RATE_DAILY_UNITS: '10000000',
  CONCURRENCY: '50',
  CONCURRENCY_COSTLY: '8',
};

export async function record(): Promise<Recording> {
  const platform = await startPlatform({ env: DEFAULT_RATES });
  try {
    const recorder = new Recorder();
    await tour(platform, recorder);
    return { calls: recorder.calls, files: filesOf(recorder.calls) };
  } finally {
    await platform.stop();
  }
}

function filesOf(calls: readonly Recorded[]): Map<string, Examples> {
  const stable = new Stable(calls);
  const shown = calls.map(({ operationId, error, exchange, show }, i) => ({
    operationId,
    error,
    exchange: stable.exchange(i, shorten(exchange, show)),
  }));
  const files = new Map<string, Examples>();
  for (const { operationId, action } of OPERATIONS) {
    const own = shown.filter((one) => one.operationId === operationId);
    const success = own.findLast(({ error }) => error === null);
    if (!success) continue;
    const errors: [string, Exchange][] = own.flatMap(({ error, exchange }) => (error ? [[error, exchange]] : []));
    const [service = ''] = action.split('.');
    const file = files.get(service) ?? {};
    files.set(service, file);
    file[operationId] = {
      ...success.exchange,
      ...(errors.length > 0 ? { errors: Object.fromEntries(errors) } : {}),
    };
  }
  return files;
}
