/** State that every process reports to the operator, under the names of the services that it hosts. */
import type { ServiceName } from '../config/services.ts';

export interface ProcessState {
  /** As `/readyz` answers. */
  readonly readiness: object;
  /** As `/metrics` answers: the text format of Prometheus. */
  readonly metrics: string;
}

export type ProcessActions = {
  [Service in ServiceName as `${Service}.process.describe`]: { params: Record<string, never>; result: ProcessState };
};
