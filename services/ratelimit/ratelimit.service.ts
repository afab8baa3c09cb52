import type { ServiceSchema } from 'moleculer';
import type { ActionHandlers } from '../../contracts/call.ts';
import type { RatelimitActions } from '../../contracts/ratelimit.ts';
import type { Platform } from '../../mixins/platform.ts';
import { Buckets } from './buckets.ts';
import { describeLimits } from './limits.ts';
import { StorageStore } from './store.ts';

const SWEEP_MS = 10_000;

/** The Moleculer schema of ratelimit: it declares and delegates. */
export default function ratelimitService({ config, database, broker }: Platform): ServiceSchema {
  const buckets = new Buckets();
  const storage = new StorageStore(database);
  let timer: NodeJS.Timeout | undefined;
  return {
    name: 'ratelimit',
    actions: {
      'leases.take'(ctx) {
        const { gateway, requests } = ctx.params;
        const now = performance.now();
        return requests.map((request) => buckets.take(gateway, request, now));
      },
      'leases.read'(ctx) {
        const now = performance.now();
        return ctx.params.requests.map((request) => buckets.state(request, now));
      },
      'limits.get'(ctx) {
        const nodes = broker.registry
          .getServiceList({ onlyAvailable: true })
          .flatMap(({ name, nodeID }) => (name === 'ratelimit' && nodeID !== undefined ? [nodeID] : []));
        return describeLimits(ctx, config, nodes, storage);
      },
    } satisfies ActionHandlers<'ratelimit', RatelimitActions>,
    started() {
      timer = setInterval(() => buckets.sweep(performance.now()), SWEEP_MS).unref();
    },
    stopped() {
      clearInterval(timer);
    },
  };
}
