/**
 * Database budget of the current request, and its use so far. It follows the work
 * of an action through every await, so that the door to the database need not be handed it with each call.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { LIMITS } from '../../lib/limits.ts';

/** The request of an action, for as long as the action works on it. */
export interface DatabaseUse {
  /** Milliseconds since 1970 after which the caller no longer waits. */
  readonly deadline: number;
  /** How long one statement may take. */
  readonly statementTimeoutMs: number;
  /** How long connections were held, in milliseconds, but for waiting in vain for a lock. */
  heldMs: number;
  /** The action has answered. Work that it left behind goes on without a deadline and is not charged. */
  ended: boolean;
}

const uses = new AsyncLocalStorage<DatabaseUse>();

/** The use of the request that is being worked on; undefined for the platform's own work. */
export function currentUse(): DatabaseUse | undefined {
  const use = uses.getStore();
  return use?.ended ? undefined : use;
}

/** How long a statement that is sent now may take. */
export const statementTimeoutMs = (): number => currentUse()?.statementTimeoutMs ?? LIMITS.statement_timeout_ms;

/** Runs `work` as part of a request; `ended` is called when `use.heldMs` is complete, before the work has an answer. */
export function measured<T>(use: DatabaseUse, work: () => Promise<T>, ended: () => void): Promise<T> {
  const end = (): void => {
    use.ended = true;
    ended();
  };
  return uses.run(use, work).then(
    (value) => {
      end();
      return value;
    },
    (error) => {
      end();
      throw error;
    },
  );
}
