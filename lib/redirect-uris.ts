/** Checks redirect URIs, whether the configuration or a client's document names them. */
const LOOPBACK_HOSTS: readonly string[] = ['127.0.0.1', '[::1]', 'localhost'];

const isLoopback = ({ hostname }: URL): boolean => LOOPBACK_HOSTS.includes(hostname);

/** Why an address cannot be a redirect address; null when it can. */
export function redirectProblem(uri: string): string | null {
  const url = URL.parse(uri);
  if (!url) return 'Not an absolute address.';
  if (uri.includes('#')) return 'A redirect address has no fragment.';
  if (url.protocol === 'https:') return null;
  if (url.protocol === 'http:') return isLoopback(url) ? null : 'http is for loopback addresses only.';
  // Private-use schemes of native applications are reverse domain names.
  return /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol) ? null : 'The scheme is not allowed.';
}

/** RFC 8252: a loopback address, or a private scheme of an installed app. */
export function isNativeRedirect(uri: string): boolean {
  const url = URL.parse(uri);
  if (!url) return false;
  return url.protocol === 'http:' ? isLoopback(url) : url.protocol !== 'https:' && url.protocol.includes('.');
}

/** RFC 8252 section 7.1: a scheme that an installed application has registered with its system. */
export function isPrivateScheme(uri: string): boolean {
  const url = URL.parse(uri);
  return url !== null && url.protocol !== 'https:' && url.protocol !== 'http:';
}

/** True for an https address on the user's own machine, which no native application serves. */
export function isLoopbackByHttps(uri: string): boolean {
  const url = URL.parse(uri);
  return url?.protocol === 'https:' && isLoopback(url);
}
