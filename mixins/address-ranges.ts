/** Network addresses from which a client may come. Source: docs/reference/authentication.md#clients. */
import { BlockList, isIP } from 'node:net';

/** True when the address lies in one of the CIDR ranges (or equals a plain address). */
export function isWithin(ip: string, ranges: readonly string[]): boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    const family = isIP(address);
    if (family === 0) continue;
    const name = family === 4 ? 'ipv4' : 'ipv6';
    const bits = prefix === undefined ? (family === 4 ? 32 : 128) : Number(prefix);
    if (Number.isInteger(bits) && bits >= 0 && bits <= (family === 4 ? 32 : 128)) list.addSubnet(address, bits, name);
  }
  const family = isIP(ip);
  return family !== 0 && list.check(ip, family === 4 ? 'ipv4' : 'ipv6');
}
