/**
 * Mutations that are refused before their service hears of them (client, tenant, address, API permission, scope): data is
 * told, so that the audit trail has them. Nobody waits for it, and a flood of them is cut off: beyond so many in a second
 * they are in the access log alone. Source: docs/reference/audit.md.
 */

import type { DataActions } from '../../contracts/data.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isUuid } from '../../lib/values/ids.ts';
import type { Exchange } from './exchange.ts';

const PER_SECOND_MAX = 50;

export type Denial = DataActions['data.audit.deny']['params'];

export class Denials {
  readonly #tell: (denial: Denial, request: RequestContext) => Promise<unknown>;
  #second = 0;
  #told = 0;

  constructor(tell: (denial: Denial, request: RequestContext) => Promise<unknown>) {
    this.#tell = tell;
  }

  /** `request`: who asked; a request without a session is nobody's. */
  note(x: Exchange, error: unknown, request: RequestContext | undefined): void {
    const operation = x.route?.operation;
    if (!operation?.mutation || !request || !(error instanceof PlatformError) || error.status !== 403) return;
    if (!this.#allowed(Math.floor(x.startedAt / 1_000))) return;
    const named = (name: string): string | undefined => x.pathValues[x.route!.parameterNames.indexOf(name)];
    const id = named('id')?.toLowerCase() ?? '';
    const key = x.req.headers['idempotency-key'];
    const denial: Denial = {
      operationId: operation.operationId,
      code: error.code,
      objectApiName: plain(named('objectApiName')),
      recordId: isUuid(id) ? id : null,
      idempotencyKey: typeof key === 'string' ? plain(key) : null,
    };
    this.#tell(denial, request).catch(() => {});
  }

  #allowed(second: number): boolean {
    if (second !== this.#second) [this.#second, this.#told] = [second, 0];
    return this.#told++ < PER_SECOND_MAX;
  }
}

/** What a name or key looks like; anything else is not worth keeping. */
const plain = (text: string | undefined): string | null =>
  text !== undefined && /^[A-Za-z0-9._:-]{1,200}$/.test(text) ? text : null;
