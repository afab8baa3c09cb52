/**
 * The network within which one person can change addresses freely: for IPv6 the first 64 bits (RFC 6177 assigns every
 * site at least that much), for IPv4 the address itself. Any other text is its own network.
 */
export const networkOf = (ip: string): string => prefixOf(ip, 4);

/** The network of a whole site: for IPv6 the first 48 bits, for IPv4 the address itself. */
export const siteOf = (ip: string): string => prefixOf(ip, 3);

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
