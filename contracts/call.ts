/**
 * Every action another service may call, with the types of its parameters and its result. Services import contracts and
 * never each other; a misspelt action does not compile.
 */
import type { OperationCall, OperationReply } from '../lib/operation.ts';
import type { AuthActions } from './auth.ts';
import type { DataActions } from './data.ts';
import type { MetadataActions } from './metadata.ts';
import type { RatelimitActions } from './ratelimit.ts';

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

export type { OperationCall, OperationReply };
