/**
 * The interactive API reference: the description of the running version, shown by Swagger UI, which is served from here
 * with everything that it loads (docs/dependencies.md). Where the operator wants it, people sign in and try operations
 * out (docs/decisions/api-reference-sign-in.md).
 */
import { readFileSync } from 'node:fs';
import { REFERENCE_CLIENT_ID, REFERENCE_READ_SCOPES, REFERENCE_SCOPES } from '../../contracts/auth.ts';
import { API_PREFIX, LATEST_DOCUMENTS_PATH, REFERENCE_PATH } from '../../lib/addresses.ts';
import { strongEtag } from '../../lib/values/etags.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN } from '../../lib/values/page-design.ts';
import { framed, ICON_LINK } from '../../lib/values/page-frame.ts';
import { Assets, HTML_TYPE, pagePolicy, scriptsFrom, webFile } from '../assets.ts';
import type { SharedAnswer } from '../kept.ts';

const library = (name: string): Buffer => readFileSync(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)));

const MAIN = 'reference/browser/reference.js';

export const REFERENCE_ASSETS = new Assets(REFERENCE_PATH, [
  ['swagger-ui-bundle.js', library('swagger-ui-bundle.js')],
  ['swagger-ui.css', library('swagger-ui.css')],
  ...scriptsFrom(MAIN),
  ['reference.css', Buffer.concat([Buffer.from(DESIGN), webFile('reference/browser/reference.css')])],
]);

/** `signIn`: people may sign in and try operations out. */
export function referencePage(baseUrl: string, signIn: boolean): SharedAnswer {
  const data = {
    description: `${API_PREFIX}/openapi.json`,
    ...(signIn
      ? { base: baseUrl, client: REFERENCE_CLIENT_ID, home: REFERENCE_PATH, scope: REFERENCE_SCOPES.join(' ') }
      : {}),
  };
  const html = framed({
    title: 'API reference',
    head: `${ICON_LINK}
<link rel="stylesheet" href="${REFERENCE_ASSETS.address('swagger-ui.css')}">
<link rel="stylesheet" href="${REFERENCE_ASSETS.address('reference.css')}">
<script defer src="${REFERENCE_ASSETS.address('swagger-ui-bundle.js')}"></script>
<script type="module" src="${REFERENCE_ASSETS.address(MAIN)}"></script>`,
    bodyAttributes: Object.entries(data)
      .map(([name, value]) => `data-${name}="${escapeHtml(value)}"`)
      .join(' '),
    home: '/',
    nav: `<a href="${LATEST_DOCUMENTS_PATH}">Documents</a><a href="${API_PREFIX}/openapi.json">OpenAPI description</a>`,
    listed: true,
    main: `<h1>API reference</h1>
<p class="lead">The description of this API. The <a href="${LATEST_DOCUMENTS_PATH}operations.html">documents</a> have the
same without a script, with an example and the errors of each operation.</p>
${signIn ? TRYING_OUT : ''}<div id="reference"></div>`,
  });
  const body = Buffer.from(html);
  return { body, contentType: HTML_TYPE, etag: strongEtag(body), headers: PAGE_HEADERS };
}

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'public, max-age=300',
  // The stylesheet of Swagger UI holds its images, and the library makes markup of texts.
  'Content-Security-Policy': pagePolicy({ images: "'self' data:", trustedTypes: false }),
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

const TRYING_OUT = `<div id="trying" class="card" hidden>
<p id="state" role="status">Sign in to try operations out. What you send is real, in your name and with your permissions;
the page may do it until you close it.</p>
<p><label for="access">Access</label>
<select id="access"><option value="${REFERENCE_READ_SCOPES.join(' ')}">read</option>
<option value="${REFERENCE_SCOPES.join(' ')}">read and change</option></select>
<button type="button" id="enter">Sign in</button>
<button type="button" id="leave" hidden>End the sign-in</button></p>
</div>
`;
