/**
 * Challenges of WebAuthn ceremonies. A challenge carries its own proof: when it was made, and that this server made it
 * for this purpose and this browser. So showing a page stores nothing; only a ceremony that succeeded is remembered,
 * until its challenge expires, so that no challenge is used twice.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { platformTime } from '../../../lib/values/clock.ts';
import type { Artifacts } from '../store/artifacts.ts';

export const CHALLENGE_SECONDS = 600;

const TIME_BYTES = 6;
const RANDOM_BYTES = 16;
const MAC_BYTES = 32;

export class Challenges {
  readonly #key: string;
  readonly #artifacts: Artifacts;

  constructor(key: string, artifacts: Artifacts) {
    this.#key = key;
    this.#artifacts = artifacts;
  }

  /** `binding`: the purpose and the browser's interaction or session, the only place where the answer is accepted. */
  make(binding: string): string {
    const head = Buffer.alloc(TIME_BYTES + RANDOM_BYTES);
    head.writeUIntBE(platformTime(), 0, TIME_BYTES);
    randomBytes(RANDOM_BYTES).copy(head, TIME_BYTES);
    return Buffer.concat([head, this.#mac(head, binding)]).toString('base64url');
  }

  /** True when this server made the challenge for `binding` recently enough. */
  isValid(challenge: string, binding: string): boolean {
    const bytes = Buffer.from(challenge, 'base64url');
    if (bytes.length !== TIME_BYTES + RANDOM_BYTES + MAC_BYTES) return false;
    const head = bytes.subarray(0, TIME_BYTES + RANDOM_BYTES);
    if (!timingSafeEqual(bytes.subarray(head.length), this.#mac(head, binding))) return false;
    return platformTime() - head.readUIntBE(0, TIME_BYTES) < CHALLENGE_SECONDS * 1_000;
  }

  /** True for the first use of a challenge, of several at once for one. */
  use(challenge: string): Promise<boolean> {
    const row = { model: 'PasskeyChallenge', id: challenge, payload: {}, ...NO_OWNER };
    return this.#artifacts.save(row, CHALLENGE_SECONDS, { replace: false });
  }

  #mac(head: Buffer, binding: string): Buffer {
    return createHmac('sha256', this.#key).update('passkey challenge').update(head).update(binding).digest();
  }
}

const NO_OWNER = { grantId: null, accountId: null, uid: null, userCode: null, signIn: null, network: null } as const;
