/**
 * Bounds of a client's parameters in a request that is kept until a person has answered it. Without them any caller could
 * have the database keep whatever fits into a request.
 */
import { PATHS } from './paths.ts';

/** Characters of all parameters together; assertions are verified and not kept. */
const PARAMETERS_MAX_CHARS = 8_192;
const PARAMETERS_MAX = 50;
const PARAMETER_MAX_CHARS = 1_024;
const MAX_CHARS: Readonly<Record<string, number>> = {
  client_id: 255,
  response_type: 50,
  response_mode: 50,
  prompt: 100,
  max_age: 20,
  code_challenge: 128,
  code_challenge_method: 20,
  login_hint: 255,
  nonce: 512,
  state: 2_048,
  scope: 2_048,
  redirect_uri: 2_048,
  post_logout_redirect_uri: 2_048,
  request_uri: 512,
  id_token_hint: 4_096,
  client_assertion: 16_384,
};
const NOT_KEPT: ReadonlySet<string> = new Set(['client_assertion']);
const KEPT_BY: ReadonlySet<string> = new Set([
  PATHS.authorization,
  PATHS.pushed_authorization_request,
  PATHS.device_authorization,
  PATHS.end_session,
]);

/**
 * Why the parameters of a request are refused, as the `error_description` of OAuth; null when they are within bounds.
 */
export function parameterProblem(pathname: string, query: URLSearchParams, body: string | null): string | null {
  if (!KEPT_BY.has(pathname)) return null;
  const parameters = [...query, ...(body === null ? [] : new URLSearchParams(body))];
  if (parameters.length > PARAMETERS_MAX) return `a request may have at most ${PARAMETERS_MAX} parameters`;
  let total = 0;
  for (const [name, { length }] of parameters) {
    if (!NOT_KEPT.has(name)) total += length;
    const max = MAX_CHARS[name] ?? PARAMETER_MAX_CHARS;
    // A name is repeated only when it is one that we know: the others are the caller's own text.
    if (length > max) return `${name in MAX_CHARS ? name : 'a parameter'} is longer than ${max} characters`;
  }
  return total > PARAMETERS_MAX_CHARS ? `the parameters are longer than ${PARAMETERS_MAX_CHARS} characters` : null;
}
