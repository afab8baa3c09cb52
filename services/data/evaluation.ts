/** Expressions of the configuration as this service evaluates them: what stands behind their variables, and what fails. */

import { PlatformError } from '../../lib/errors/platform-error.ts';
import { BUDGET_UNITS, type Facts } from '../../lib/expression/evaluate.ts';
import { EvaluationError } from '../../lib/expression/functions.ts';
import type { View } from './view.ts';

/** What the variables stand for that do not depend on a record. */
export function callerFacts(
  view: View,
  now: number,
): Pick<Facts, 'user' | 'hasPermission' | 'inGroup' | 'now' | 'timezone' | 'budget'> {
  const { principal, system, circle } = view.access;
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
    inGroup: (name) => circle.groups.has(name),
    now,
    timezone: view.snapshot.tenant.timezone,
    budget: { units: BUDGET_UNITS },
  };
}

/** The caller's own zone, or that of the tenant. */
export const timezoneOf = ({ access, snapshot }: View): string => access.principal.timezone || snapshot.tenant.timezone;

/** Why an expression gives no value for a record; 503 with `message` when that is no fault of the record. */
export function failureOf(error: unknown, message: string): EvaluationError {
  if (!(error instanceof EvaluationError)) throw error;
  // The cost is counted and not measured, so only a busy machine takes so long over it.
  if (error.reason === 'TIME_EXCEEDED')
    throw new PlatformError('SERVICE_UNAVAILABLE', message, { retryAfterSeconds: 1, cause: error });
  return error;
}
