/** Streams under way: so many of one caller, of one tenant and of the process, and the bytes that they have moved. */
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Call } from './call.ts';

interface StreamLimits {
  readonly ofCaller: number;
  readonly ofTenant: number;
  readonly all: number;
}

export class Streams {
  readonly #limits: StreamLimits;
  readonly #counts = new Map<string, number>();
  #open = 0;
  /** Moved since the start. */
  bytes = 0;
  refusals = 0;

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  get open(): number {
    return this.#open;
  }

  /** Takes a place for the call. Returns what gives it back; throws CONCURRENCY_LIMIT_EXCEEDED. */
  enter({ session, ip }: Pick<Call, 'session' | 'ip'>): () => void {
    const { ofCaller, ofTenant, all } = this.#limits;
    const tenant = `tenant ${session?.tenantId ?? ''}`;
    const caller = session ? `caller ${session.tenantId} ${session.clientId} ${session.userId}` : `address ${ip}`;
    this.#check(this.#counts.get(caller) ?? 0, ofCaller);
    this.#check(this.#counts.get(tenant) ?? 0, ofTenant);
    this.#check(this.#open, all);
    this.#add(caller, 1);
    this.#add(tenant, 1);
    this.#open++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#add(caller, -1);
      this.#add(tenant, -1);
      this.#open--;
    };
  }

  #check(open: number, max: number): void {
    if (open < max) return;
    this.refusals++;
    throw new PlatformError('CONCURRENCY_LIMIT_EXCEEDED', `At most ${max} such streams may be open.`, {
      details: { max },
      retryAfterSeconds: 1,
    });
  }

  #add(key: string, change: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + change;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}
