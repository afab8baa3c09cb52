/** Public operations that the gateway answers itself: descriptions of the contract, never private data. */
import type { Operation } from '../../lib/operation.ts';

export const GATEWAY_OPERATIONS: readonly Operation[] = [];
