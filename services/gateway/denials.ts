/**
 * Mutations that the gateway refuses (client, tenant, network address, API permission, scope) are reported to data for
 * the audit trail. The request does not wait for that, and beyond a number per second the access log alone has them.
 * Source: docs/reference/audit.md.
 */
import type { DataActions } from '../../contracts/data.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isUuid } from '../../lib/values/ids.ts';
import type { Exchange } from './exchange.ts';

const PER_SECOND_MAX = 50;

export type Denial = DataActions['data.audit.deny']['params'];

export class Denials {
  readonly #report: (denial: Denial, request: RequestContext) => Promise<unknown>;
  #second = 0;
  #reported = 0;

  constructor(report: (denial: Denial, request: RequestContext) => Promise<unknown>) {
    this.#report = report;
  }

  /** `request`: the caller; a refusal without a session belongs to no tenant and is not reported. */
  note(x: Exchange, error: unknown, request: RequestContext | undefined): void {
    const route = x.routeIfKnown;
    if (!route?.operation.mutation || !request || !(error instanceof PlatformError) || error.status !== 403) return;
    if (!this.#allowed(Math.floor(x.startedAt / 1_000))) return;
    const named = (name: string): string | undefined => x.pathValues[route.parameterNames.indexOf(name)];
    const id = named('id')?.toLowerCase() ?? '';
    const key = x.req.headers['idempotency-key'];
    const denial: Denial = {
      operationId: route.operation.operationId,
      code: error.code,
      objectApiName: plain(named('objectApiName')),
      recordId: isUuid(id) ? id : null,
      idempotencyKey: typeof key === 'string' ? plain(key) : null,
    };
    this.#report(denial, request).catch(() => {});
  }

  #allowed(second: number): boolean {
    if (second !== this.#second) [this.#second, this.#reported] = [second, 0];
    return this.#reported++ < PER_SECOND_MAX;
  }
}

/** Text that can be a name or a key, else null. */
const plain = (text: string | undefined): string | null =>
  text !== undefined && /^[A-Za-z0-9._:-]{1,200}$/.test(text) ? text : null;
