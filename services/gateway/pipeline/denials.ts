/**
 * Mutations that the gateway refuses (client, tenant, network address, API permission, scope) are reported to data for
 * the audit trail, within bounds. The request does not wait for that. Source: docs/reference/audit.md.
 */
import type { DataActions } from '../../../contracts/data.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { BoundedDenials, type Suppressed } from '../../../mixins/bounded-denials.ts';
import type { Call } from './call.ts';

type Denial = DataActions['data.audit.deny']['params'];

export interface DenialSink {
  deny: (denial: Denial, request: RequestContext) => Promise<unknown>;
  suppress: (suppressed: Suppressed) => Promise<unknown>;
}

export class Denials {
  readonly #bounded: BoundedDenials<{ denial: Denial; request: RequestContext }>;

  constructor({ deny, suppress }: DenialSink, now?: () => number) {
    this.#bounded = new BoundedDenials({ deny: ({ denial, request }) => deny(denial, request), suppress }, now);
  }

  /** `request`: the caller; a refusal without a session belongs to no tenant and is not reported. */
  note(x: Call, error: unknown, request: RequestContext | undefined): void {
    const route = x.routeIfKnown;
    if (!route?.operation.mutation || !request || !(error instanceof PlatformError) || error.status !== 403) return;
    const named = (name: string): string | undefined => x.pathValues[route.parameterNames.indexOf(name)];
    const id = named('id')?.toLowerCase() ?? '';
    const key = x.headers['idempotency-key'];
    const denial: Denial = {
      operationId: route.operation.operationId,
      code: error.code,
      objectApiName: plain(named('objectApiName')),
      recordId: isUuid(id) ? id : null,
      idempotencyKey: typeof key === 'string' ? plain(key) : null,
    };
    this.#bounded.record({ tenantId: request.tenantId, origin: request.userId }, { denial, request });
  }

  /** Ends the minutes that are over. */
  sweep(): void {
    this.#bounded.sweep();
  }

  /** Ends all minutes, so that a stop loses no count. */
  close(): Promise<void> {
    return this.#bounded.close();
  }
}

/** Text that can be a name or a key, else null. */
const plain = (text: string | undefined): string | null =>
  text !== undefined && /^[A-Za-z0-9._:-]{1,200}$/.test(text) ? text : null;
