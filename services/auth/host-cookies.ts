/**
 * Cookies behind https: each is sent with the prefix `__Host-`, so that a browser takes it from this host alone, over
 * https alone, and no neighbouring subdomain can plant one (RFC 6265bis section 4.1.3). Such a cookie is one of the
 * whole site. The provider ties two of its cookies to the path of one sign-in, which ends in the id of that sign-in;
 * here the id is part of their name instead, so that several may be under way in one browser.
 */
const PREFIX = '__Host-';
/** Stands between name and id; a cookie's name may contain it, an id does not. */
const OF = '~';
/** Sign-ins under way in one browser; with each further one the oldest is forgotten. */
const SIGN_INS_MAX = 6;

interface HostCookie {
  /** As the provider knows it. */
  name: string;
  /** Of which sign-in; null: of the browser. */
  id: string | null;
}

const lastSegment = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const hostName = ({ name, id }: HostCookie): string => PREFIX + name + (id === null ? '' : OF + id);

function hostCookie(text: string): HostCookie | null {
  if (!text.startsWith(PREFIX)) return null;
  const [name = '', id = null] = text.slice(PREFIX.length).split(OF, 2);
  return { name, id };
}

/** Names and values of a Cookie header, in its order: browsers send the oldest first. */
const pairs = (header: string): [name: string, value: string][] =>
  header.split(';').map((part) => {
    const [name = '', ...value] = part.trim().split('=');
    return [name, value.join('=')];
  });

/** The browser's cookies that the provider may see on this path. */
export function cookiesFrom(header: string, path: string): string {
  const id = lastSegment(path);
  return pairs(header)
    .flatMap(([name, value]) => {
      const cookie = hostCookie(name);
      return cookie && (cookie.id === null || cookie.id === id) ? [`${cookie.name}=${value}`] : [];
    })
    .join('; ');
}

/** Set-Cookie headers for the provider's cookies; `header`: those that the browser sent. */
export function cookiesTo(set: readonly string[], header: string): string[] {
  const sent = set.map(toHostCookie);
  const ids = new Set(sent.flatMap(({ cookie, cleared }) => (cookie.id === null || cleared ? [] : [cookie.id])));
  if (ids.size === 0) return sent.map(({ text }) => text);
  const known = pairs(header).flatMap(([name]) => hostCookie(name) ?? []);
  const others = new Set(known.flatMap(({ id }) => (id === null || ids.has(id) ? [] : [id])));
  const forgotten = new Set([...others].slice(0, Math.max(0, others.size + ids.size - SIGN_INS_MAX)));
  const clear = known.filter(({ id }) => id !== null && forgotten.has(id));
  return [...sent.map(({ text }) => text), ...clear.map((cookie) => `${hostName(cookie)}=; path=/; max-age=0; secure`)];
}

function toHostCookie(set: string): { cookie: HostCookie; cleared: boolean; text: string } {
  const [pair = '', ...attributes] = set.split('; ');
  const [name = '', ...value] = pair.split('=');
  const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/';
  const cookie = { name, id: path === '/' ? null : lastSegment(path) };
  const kept = attributes.filter((attribute) => !/^(path=|domain=|secure$)/i.test(attribute));
  const cleared = value.join('=') === '';
  return { cookie, cleared, text: [`${hostName(cookie)}=${value.join('=')}`, 'path=/', ...kept, 'secure'].join('; ') };
}
