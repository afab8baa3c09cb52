/**
 * The network that limits count as one caller: for IPv6 the first 48 bits, the largest block that a site is commonly
 * given (RFC 6177), for IPv4 the address itself. By 64 bits one site would count as 65,536 callers. Several sites may
 * share a block, as they share an IPv4 address behind a carrier's translation. Any other text is its own network.
 */
export const networkOf = (ip: string): string => prefixOf(ip, 3);

/**
 * The network in which a user is recognised: for IPv6 the first 64 bits, for IPv4 the address itself. Narrower than
 * that of limits, because it relaxes checks, and the neighbours of a user must not gain by it.
 */
export const homeNetworkOf = (ip: string): string => prefixOf(ip, 4);

function prefixOf(ip: string, length: number): string {
  if (!ip.includes(':')) return ip;
  const [head = '', tail] = ip.toLowerCase().split('::');
  const first = head.split(':').filter(Boolean);
  const last = (tail ?? '').split(':').filter(Boolean);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last];
  return groups
    .slice(0, length)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
