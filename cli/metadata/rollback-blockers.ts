/** Why a deployment cannot be rolled back, in words. */

/** An obstacle to a rollback: a component, or the deployment itself (`Deployment`). */
export interface Blocker {
  type: string;
  fullName: string;
  reason: string;
}

const BLOCKED: Readonly<Record<string, string>> = {
  NOT_FOUND: 'there is no such deployment',
  NOT_SUCCEEDED: 'it did not succeed, so there is nothing to take back',
  NOT_APPLIED: 'it was a validation, so there is nothing to take back',
  NOTHING_CHANGED: 'it changed nothing',
  ALREADY_ROLLED_BACK: 'it was rolled back already',
  EXPIRED: 'it is too old to be rolled back',
  NOT_KEPT: 'what it takes to roll it back is not kept any more',
  CHANGED_LATER: 'a later deployment changed it; roll that one back first',
  IRREVERSIBLE: 'its change cannot be rolled back',
};

const reasonText = (reason: string): string => BLOCKED[reason] ?? reason;

/** One line each. */
export const blockerLines = (blockers: readonly Blocker[]): string[] =>
  blockers.map(({ type, fullName, reason }) =>
    type === 'Deployment' ? reasonText(reason) : `${type} ${fullName}: ${reasonText(reason)}`,
  );

/** Type guard for a detail of an error. */
export const isBlocker = (value: unknown): value is Blocker =>
  typeof value === 'object' && value !== null && 'type' in value && 'fullName' in value && 'reason' in value;
