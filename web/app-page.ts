/** A page that is one document without data at each of its addresses, with the files that it loads. */
import { APP_CLIENTS, type AppClient, NOTIFICATIONS } from '../contracts/auth.ts';
import { escapeHtml } from '../lib/values/html.ts';
import { BELL, BELL_STYLE, DESIGN, FORMS, TABLES } from '../lib/values/page-design.ts';
import { framed, ICON_LINK } from '../lib/values/page-frame.ts';
import { Assets, pagePolicy, scriptsFrom, webFile } from './assets.ts';

export interface AppPage {
  /** Name in log and metrics. */
  readonly label: string;
  /** Its first address; the others are below. */
  readonly root: string;
  readonly assets: Assets;
  /** Addresses of the document. */
  readonly view: RegExp;
  readonly html: (baseUrl: string) => string;
}

interface AppPageParts {
  /** Name in log and metrics, and of its folder in `web/`. */
  readonly label: string;
  /** As which users sign in. */
  readonly client: AppClient;
  /** Stylesheets of `shared/` before its own. */
  readonly styles?: readonly string[];
  /** Addresses below the first one, as a pattern; default: one for each id. */
  readonly below?: string;
  /** Script that is no module. */
  readonly library?: readonly [name: string, body: Buffer];
  /** Text for browsers without scripts. */
  readonly withoutScripts: string;
}

export const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

/** The page loads `main.js` of its folder `browser/`, and all that this imports. */
export function appPage(parts: AppPageParts): AppPage {
  const { label, client, styles = [], below = UUID, library, withoutScripts } = parts;
  const { clientId, path: root, scopes, title } = client;
  const others = APP_CLIENTS.filter((page) => page !== client && page !== NOTIFICATIONS)
    .map(({ path, title: other }) => `<a href="${path}">${other}</a>`)
    .join('');
  const bell = `<a id="bell" href="${NOTIFICATIONS.path}" aria-label="${NOTIFICATIONS.title}"${client === NOTIFICATIONS ? ' aria-current="page"' : ''}>${BELL}<span id="unread" hidden></span></a>`;
  const own = (name: string): string => `${label}/browser/${name}`;
  const main = own('main.js');
  const scripts = scriptsFrom(main);
  const stylesheet = `${label}.css`;
  const assets = new Assets(root, [
    [
      stylesheet,
      Buffer.concat([
        Buffer.from(`${DESIGN}${FORMS}${TABLES}${BELL_STYLE}`),
        ...[...styles.map((name) => `shared/${name}`), own(stylesheet)].map(webFile),
      ]),
    ],
    ...scripts,
    ...(library ? [library] : []),
  ]);
  const head = `${ICON_LINK}
<link rel="stylesheet" href="${assets.address(stylesheet)}">
${[...scripts.keys()].map((path) => `<link rel="modulepreload" href="${assets.address(path)}">`).join('\n')}
<script type="module" src="${assets.address(main)}"></script>${
    library ? `\n<script defer src="${assets.address(library[0])}"></script>` : ''
  }`;
  return {
    label,
    root,
    assets,
    view: new RegExp(`^${root}(?:/${below})?$`, 'i'),
    html: (baseUrl) =>
      framed({
        title,
        head,
        bodyAttributes: `data-base="${escapeHtml(baseUrl)}" data-client="${clientId}" data-scope="${scopes.join(' ')}" data-home="${root}"`,
        // Not the home page: leaving the page gives up its token.
        home: root,
        nav: `<span id="who"></span><a href="/">Home</a>${others}${bell}<span class="together"><a href="/account">Account</a><a id="leave" href="/oauth2/logout">Sign out</a></span>`,
        main: `<p class="lead" id="starting">Loading…</p>
<noscript><p>${withoutScripts}</p></noscript>`,
        afterwards: '<p class="visually-hidden" id="announcements" role="status"></p>\n',
      }),
  };
}

export const APP_PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': pagePolicy(),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
