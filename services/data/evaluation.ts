/** Expressions of the configuration in this service: the values of their variables, and failures of evaluation. */

import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Budget, Facts } from '../../lib/expression/evaluate.ts';
import { EvaluationError } from '../../lib/expression/functions.ts';
import { timezoneOf, type View } from './view.ts';

/** The variables that do not depend on a record. */
export function callerFacts(
  view: View,
  now: number,
  budget: Budget,
): Pick<Facts, 'user' | 'hasPermission' | 'inGroup' | 'now' | 'timezone' | 'budget'> {
  const { principal, system, memberships } = view.access;
  return {
    user: {
      id: principal.userId,
      username: principal.username,
      displayName: principal.displayName,
      locale: principal.locale,
      timezone: timezoneOf(view),
      profileApiName: principal.profileApiName,
      roleApiName: principal.roleApiName,
      permissionSetApiNames: principal.permissionSetApiNames,
    },
    hasPermission: (name) => system.has(name),
    inGroup: (name) => memberships.groups.has(name),
    now,
    timezone: view.snapshot.tenant.timezone,
    budget,
  };
}

/** Why an expression has no value for a record; 503 with `message` when the record is not the cause. */
export function failureOf(error: unknown, message: string): EvaluationError {
  if (!(error instanceof EvaluationError)) throw error;
  // Evaluation has a budget of units, so only an overloaded machine exceeds the time limit.
  if (error.reason === 'TIME_EXCEEDED')
    throw new PlatformError('SERVICE_UNAVAILABLE', message, { retryAfterSeconds: 1, cause: error });
  return error;
}
