/** The demand for a recent sign-in with two factors (RFC 9470). */
import { PlatformError } from '../lib/errors/platform-error.ts';
import { MULTI_FACTOR_ACR, STEP_UP_MAX_AGE_SECONDS } from './auth.ts';

/** `resource`: where a client finds out how to get a token, as a parameter of the header. */
export function stepUpDemanded(resource?: string): PlatformError {
  const message =
    'This operation needs a recent sign-in with two factors: authorize again with acr_values and max_age.';
  const parameters = [
    'error="insufficient_user_authentication"',
    `error_description="${message}"`,
    `acr_values="${MULTI_FACTOR_ACR}"`,
    `max_age=${STEP_UP_MAX_AGE_SECONDS}`,
    ...(resource === undefined ? [] : [resource]),
  ];
  return new PlatformError('AUTHENTICATION_INSUFFICIENT', message, {
    details: { acrValues: [MULTI_FACTOR_ACR], maxAgeSeconds: STEP_UP_MAX_AGE_SECONDS },
    headers: { 'WWW-Authenticate': `Bearer ${parameters.join(', ')}` },
  });
}
