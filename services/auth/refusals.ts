/**
 * Refused sign-ins, for the audit trail of the tenant that was meant. The typed name never goes
 * there: an unknown username may be a password typed into the wrong field.
 */
import type { DataActions, SignInRefusalCode } from '../../contracts/data.ts';
import { networkOf } from '../../lib/values/network.ts';
import { BoundedDenials, type DenialSink } from '../../mixins/bounded-denials.ts';

export interface Refusal {
  code: SignInRefusalCode;
  /** Null when what was typed says nothing about it. */
  tenantId: string | null;
  userId: string | null;
}

/** Origin of an attempt. */
export interface AttemptOrigin {
  clientId: string;
  ip: string;
  requestId: string;
}

type Entry = DataActions['data.audit.denySignIn']['params'];

export class Refusals {
  readonly #bounded: BoundedDenials<Entry>;

  constructor(sink: DenialSink<Entry>) {
    this.#bounded = new BoundedDenials(sink);
  }

  /** Attempts are distinguished by network: the caller is anonymous. */
  note({ tenantId, userId, code }: Refusal, origin: AttemptOrigin): void {
    if (tenantId === null) return;
    this.#bounded.record({ tenantId, origin: networkOf(origin.ip) }, { tenantId, userId, code, ...origin });
  }

  sweep(): void {
    this.#bounded.sweep();
  }

  close(): Promise<void> {
    return this.#bounded.close();
  }
}
