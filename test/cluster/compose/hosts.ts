/** Loaded before a program that stands for a container (NODE_OPTIONS): the names of the others lead to their addresses. */
import dns, { type LookupAddress, type LookupAllOptions, type LookupOptions } from 'node:dns';

const hosts = JSON.parse(process.env['COMPOSE_HOSTS'] ?? '{}') as Record<string, string>;
type Found = (error: Error | null, address?: string | LookupAddress[], family?: number) => void;
const lookup = dns.lookup as (name: string, options: LookupOptions, done: Found) => void;

dns.lookup = ((name: string, options: LookupOptions | Found, done?: Found) => {
  const found = typeof options === 'function' ? options : done!;
  const wanted = typeof options === 'function' ? {} : options;
  const address = hosts[name];
  if (address === undefined) lookup(name, wanted, found);
  else if ((wanted as LookupAllOptions).all) process.nextTick(found, null, [{ address, family: 4 }]);
  else process.nextTick(found, null, address, 4);
}) as typeof dns.lookup;
