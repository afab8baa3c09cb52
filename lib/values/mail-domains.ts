/** Mail domains, as they stand in usernames and in the configuration. */
import { domainToASCII } from 'node:url';

const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/;

/** A domain in the one way in which it is compared, in ASCII and lower case; null when it is none. */
export function domainName(text: string): string | null {
  const domain = text.length > 253 ? '' : domainToASCII(text.trim());
  return DOMAIN.test(domain) ? domain : null;
}

/** The domain of a username, which is what stands behind its last @; null without one. */
export function domainOf(username: string): string | null {
  const at = username.lastIndexOf('@');
  return at < 0 ? null : domainName(username.slice(at + 1));
}
