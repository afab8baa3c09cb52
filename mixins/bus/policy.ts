/** Permissions of identities on the bus. The platform's own policy is contracts/bus.ts; mixins know no contract. */

/**
 * Names of the services that a process hosts, or `operator`; proven by the subject that its NATS user may publish to.
 */
export type Identity = readonly string[];

export interface BusPolicy {
  mayCall(caller: Identity, action: string): boolean;
  maySend(sender: Identity, event: string): boolean;
  mayHear(receiver: Identity, event: string): boolean;
  /** The caller may call the action for a user, with a request context. */
  mayActForUsers(caller: Identity, action: string): boolean;
  /** Longest wait of a caller for a call of the action for a user. */
  validMs(action: string): number;
  /** Of all actions. */
  readonly longestCallMs: number;
}
