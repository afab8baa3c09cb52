/** State that every process reports to the operator, under the names of the services that it hosts. */
import type { ServiceName } from './services.ts';

/** Body of `/readyz`. */
interface Readiness {
  readonly status: string;
  readonly checks: Readonly<Record<string, boolean>>;
  readonly degraded?: readonly string[];
  readonly services?: Readonly<Record<string, { readonly status: string; readonly awaySeconds?: number }>>;
}

export interface ProcessState {
  readonly readiness: Readiness;
  /** As `/metrics` answers: the text format of Prometheus. */
  readonly metrics: string;
}

export type ProcessActions = {
  [Service in ServiceName as `${Service}.process.describe`]: { params: Record<string, never>; result: ProcessState };
};
