/**
 * Request contexts on the bus, authenticated for one call by the gateway, or by a service that goes on for its user:
 * HMAC-SHA256 (RFC 2104) over the context, the action, the id of the call and the node that is called, under a key that
 * only those and the called service have. A context is accepted once, and no longer than its caller waits. Reasons: docs/decisions/trust-on-the-bus.md.
 */

import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { RequestContext } from '../../lib/context.ts';
import { platformTime } from '../../lib/values/clock.ts';
import type { BusPolicy } from './policy.ts';

/** The one call that a context is for. */
interface CallIdentity {
  readonly action: string;
  /** Of Moleculer's context, new for every call. */
  readonly id: string;
  readonly target: string;
}

interface Key {
  readonly id: Buffer;
  readonly secret: KeyObject;
}

const KEY_ID_BYTES = 4;
const MAC_BYTES = 32;
const HEAD_BYTES = KEY_ID_BYTES + MAC_BYTES;
/** Clocks of two machines may differ by so much. */
const CLOCK_SKEW_MS = 10_000;

/** Why a context was refused. */
export class ContextRefused extends Error {
  override readonly name: string = 'ContextRefused';
}

/** A context that was made for this call, at a time that is not now. */
export class ClocksDiffer extends ContextRefused {
  override readonly name = 'ClocksDiffer';
}

export class SealedContexts {
  readonly #keys: ReadonlyMap<string, readonly Key[]>;
  readonly #times: Pick<BusPolicy, 'validMs' | 'longestCallMs'>;
  /** Ids of calls whose context was accepted: of the running period, and of the one before. */
  #accepted = new Set<string>();
  #acceptedBefore = new Set<string>();
  #periodEnds = Number.NEGATIVE_INFINITY;

  constructor(keys: ReadonlyMap<string, readonly Buffer[]>, times: Pick<BusPolicy, 'validMs' | 'longestCallMs'>) {
    this.#times = times;
    this.#keys = new Map([...keys].map(([service, secrets]) => [service, secrets.map(keyOf)]));
  }

  /** The context as it travels with one call. */
  seal(context: RequestContext, call: CallIdentity): Buffer {
    const key = this.#keys.get(serviceOf(call.action))?.[0];
    if (!key) throw new ContextRefused(`There is no key to call ${call.action} for a user.`);
    const body = Buffer.from(JSON.stringify(context));
    return Buffer.concat([key.id, macOf(key, body, call), body]);
  }

  /** The context that came with a call. Throws ContextRefused unless it was made for this very call, now. */
  open(sealed: Buffer, call: CallIdentity): RequestContext {
    const key = this.#keys.get(serviceOf(call.action))?.find(({ id }) => id.equals(sealed.subarray(0, KEY_ID_BYTES)));
    if (!key || sealed.length <= HEAD_BYTES) throw new ContextRefused('The context has an unknown key.');
    const body = sealed.subarray(HEAD_BYTES);
    if (!timingSafeEqual(sealed.subarray(KEY_ID_BYTES, HEAD_BYTES), macOf(key, body, call)))
      throw new ContextRefused('The context was not made for this call.');
    const context: RequestContext = JSON.parse(body.toString());
    const remaining = context.deadline - platformTime();
    if (remaining < -CLOCK_SKEW_MS || remaining > this.#times.validMs(call.action) + CLOCK_SKEW_MS)
      throw new ClocksDiffer('The context has expired, or the clocks differ.');
    this.#acceptOnce(call.id);
    return context;
  }

  #acceptOnce(id: string): void {
    const now = performance.now();
    if (now > this.#periodEnds) {
      const rememberedMs = this.#times.longestCallMs + 2 * CLOCK_SKEW_MS;
      this.#acceptedBefore = now > this.#periodEnds + rememberedMs ? new Set() : this.#accepted;
      this.#accepted = new Set();
      this.#periodEnds = now + rememberedMs;
    }
    if (this.#accepted.has(id) || this.#acceptedBefore.has(id))
      throw new ContextRefused('The context was already used.');
    this.#accepted.add(id);
  }
}

const serviceOf = (action: string): string => action.slice(0, action.indexOf('.'));

const keyOf = (secret: Buffer): Key => ({
  id: createHash('sha256').update(secret).digest().subarray(0, KEY_ID_BYTES),
  secret: createSecretKey(secret),
});

function macOf({ secret }: Key, body: Buffer, { action, id, target }: CallIdentity): Buffer {
  // The names are free of line breaks, so no two calls have the same text.
  return createHmac('sha256', secret).update(`${action}\n${id}\n${target}\n`).update(body).digest();
}
