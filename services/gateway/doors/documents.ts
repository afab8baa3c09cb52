/** The door of the versioned documents, which are public and have a budget of their own. */
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { DoorKeeper, HttpEdge } from '../edge/edge.ts';
import type { Exchange } from '../edge/exchange.ts';
import { sendErrorToPeople } from '../edge/reply.ts';
import type { Budgets } from '../pipeline/budget.ts';
import { chargeAddress, settle } from '../pipeline/index.ts';
import { VersionedDocuments } from '../public/versions.ts';

export class DocumentsDoor implements DoorKeeper {
  readonly #edge: HttpEdge;
  readonly #budgets: Budgets;
  readonly #documents = new VersionedDocuments();

  constructor(edge: HttpEdge, budgets: Budgets) {
    this.#edge = edge;
    this.#budgets = budgets;
  }

  async answer(x: Exchange): Promise<void> {
    await chargeAddress(this.#budgets, x, this.#budgets.documents(x.ip));
    settle(this.#budgets, x, 0, await this.#documents.answer(x, this.#edge.replyOptions()));
  }

  sendError(x: Exchange, error: PlatformError): void {
    sendErrorToPeople(x, error, this.#edge.replyOptions());
  }
}
