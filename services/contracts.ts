/**
 * Every action another service may call, with the types of its parameters and its result. Services import nothing of
 * each other but their contract.ts; a misspelt action does not compile.
 */
import type { Operation, OperationCall, OperationReply } from '../lib/operation.ts';
import { AUTH_OPERATIONS, type AuthActions } from './auth/contract.ts';
import { DATA_OPERATIONS, type DataActions } from './data/contract.ts';
import { GATEWAY_OPERATIONS } from './gateway/contract.ts';
import { METADATA_OPERATIONS, type MetadataActions } from './metadata/contract.ts';
import { RATELIMIT_OPERATIONS, type RatelimitActions } from './ratelimit/contract.ts';

export type ActionMap = AuthActions & DataActions & MetadataActions & RatelimitActions;

interface Caller {
  // biome-ignore lint/suspicious/noExplicitAny: Moleculer's own signature
  call(action: string, params?: any, options?: any): PromiseLike<any>;
}

/** A typed call; the request context of `caller` (a Moleculer Context) goes along by itself. */
export function call<K extends keyof ActionMap>(
  caller: Caller,
  action: K,
  params: ActionMap[K]['params'],
  options?: { timeout?: number; meta?: object; nodeID?: string },
): Promise<ActionMap[K]['result']> {
  return caller.call(action, params, options) as Promise<ActionMap[K]['result']>;
}

/** The rows of all public operations, in the order of the documents. */
export const OPERATIONS: readonly Operation[] = [
  ...GATEWAY_OPERATIONS,
  ...AUTH_OPERATIONS,
  ...RATELIMIT_OPERATIONS,
  ...DATA_OPERATIONS,
  ...METADATA_OPERATIONS,
];

export type { OperationCall, OperationReply };
