/**
 * Authorization requests that ask for a recent sign-in, or one with two factors (RFC 9470). oidc-provider takes
 * `acr_values` and `max_age` with the scope openid alone, and RFC 9470 knows no such condition: without that scope they
 * travel under names of our own.
 */
import { type Context, errors } from 'oidc-provider';

const OWN_NAMES: Readonly<Record<string, string>> = { acr_values: 'oauth_acr_values', max_age: 'oauth_max_age' };

export const STEP_UP_PARAMETERS: readonly string[] = Object.values(OWN_NAMES);

const words = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ').filter(Boolean) : []);

/** Renames the parameters of a request without the scope openid; true when there are any. */
export function renameStepUp(parameters: URLSearchParams): boolean {
  if (words(parameters.get('scope')).includes('openid')) return false;
  let renamed = false;
  for (const [name, own] of Object.entries(OWN_NAMES)) {
    const values = parameters.getAll(name);
    if (values.length === 0) continue;
    parameters.delete(name);
    // Sent twice, a parameter is refused by the provider, under this name as well.
    for (const value of values) parameters.append(own, value);
    renamed = true;
  }
  return renamed;
}

/** The levels of assurance that the client asks for. */
export const requestedAcrs = (params: Record<string, unknown>): string[] => [
  ...words(params['acr_values']),
  ...words(params['oauth_acr_values']),
];

/**
 * True when the sign-in is older than a client without the scope openid allows; the provider itself checks the others.
 */
export function isTooOld({ oidc }: Context): boolean {
  const maxAge = oidc.params.oauth_max_age;
  if (maxAge === undefined) return false;
  if (!/^\d{1,9}$/.test(maxAge)) throw new errors.InvalidRequest('max_age must be a number of seconds');
  return oidc.session.past(maxAge) && !oidc.result?.login;
}
