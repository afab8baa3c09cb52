/** Small files that browsers and crawlers ask of every host. */
import { APP_CLIENTS, AUTH_ROOTS } from '../../contracts/auth.ts';
import { API_PREFIX } from '../../lib/addresses.ts';
import { ICON } from '../../lib/values/page-design.ts';
import { ICON_PATH } from '../../lib/values/page-frame.ts';
import { DAY_SECONDS, kept, PLAIN, type SharedAnswer } from '../kept.ts';

/** Paths without content for search engines. */
const UNLISTED = [
  `${API_PREFIX}/`,
  ...APP_CLIENTS.map(({ path }) => path),
  ...AUTH_ROOTS.filter((root) => root !== '.well-known').map((root) => `/${root}`),
  '/healthz',
  '/readyz',
  '/metrics',
];

const ICON_FILE = kept('image/svg+xml', ICON, DAY_SECONDS, {
  headers: { 'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'" },
});

const ROBOTS = kept(
  PLAIN,
  ['User-agent: *', ...UNLISTED.map((path) => `Disallow: ${path}`), ''].join('\n'),
  DAY_SECONDS,
);

/** By path. Browsers that ask for `favicon.ico` by themselves take the icon by its Content-Type. */
export const SITE_FILES: ReadonlyMap<string, SharedAnswer> = new Map([
  [ICON_PATH, ICON_FILE],
  ['/favicon.ico', ICON_FILE],
  ['/robots.txt', ROBOTS],
]);
