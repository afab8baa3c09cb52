/** The part of the gateway that the steps use. */
import type { ServiceBroker } from 'moleculer';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import type { TenantQueue } from '../../../mixins/tenant-queue.ts';
import type { Budgets } from './budget.ts';
import type { Call } from './call.ts';
import type { Origins } from './origins.ts';
import type { PieceHashes } from './piece-hashes.ts';
import type { Router } from './router.ts';
import type { RunCalls } from './run-calls.ts';
import type { Sessions } from './session.ts';
import type { Streams } from './streams.ts';

export interface Gate {
  readonly baseUrl: string;
  readonly broker: ServiceBroker;
  readonly router: Router;
  readonly sessions: Sessions;
  readonly budgets: Budgets;
  readonly origins: Origins;
  /** One body of many megabytes of each tenant is received and answered at a time. */
  readonly hugeBodies: TenantQueue;
  readonly blobs: Blobs;
  readonly streamedBodies: Streams;
  readonly pieceHashes: PieceHashes;
  readonly runs: RunCalls;
  /** Called when a mutation in the tenant has succeeded. */
  readonly wrote: (tenantId: string) => void;
  /** Called with every call that a step refused. */
  readonly refused: (x: Call, error: unknown) => void;
}

export type Step = (gate: Gate, x: Call) => void | Promise<void>;
