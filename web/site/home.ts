/**
 * The home page: what this is, what to do first, and where everything else is. A page for people, JSON for programs;
 * made once, and the same for all. It knows nothing of tenants. With the demo on it lists the demo users; the
 * password only while it is the public one of README.md. Production has no demo.
 */

import { type Config, DEFAULT_DEMO_PASSWORD } from '../../config/env.ts';
import { APP_CLIENTS } from '../../contracts/auth.ts';
import {
  API_PREFIX,
  API_VERSION,
  apiUrl,
  LATEST_DOCUMENTS_PATH,
  protectedResourceUrl,
  REFERENCE_PATH,
} from '../../lib/addresses.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN, PROSE, TABLES } from '../../lib/values/page-design.ts';
import { PRODUCT } from '../../lib/values/page-frame.ts';
import { HTML_TYPE } from '../assets.ts';
import { kept, type SharedAnswer } from '../kept.ts';
import { pageKind } from '../page-kind.ts';

const KEPT_SECONDS = 300;

const PAGE = pageKind(
  `${DESIGN}${PROSE}${TABLES}
main .lead{font-size:1.1rem}
code.whole{white-space:nowrap}
main ol.steps{list-style:none;padding:0;counter-reset:step;display:grid;grid-template-columns:minmax(0,1fr);gap:1rem}
.steps>li{counter-increment:step;margin:0}
.steps>.card{padding-block:1.25rem}.steps h3{margin:0 0 .35rem}.steps h3::before{content:counter(step) ". ";color:var(--soft)}
.steps p:last-child,.steps pre:last-child{margin:0}
.steps pre{background:var(--ground)}
`,
  { listed: true },
);

/** Demo users to begin with; README.md has all of them. */
export const DEMO_USERS = [
  { username: 'mia@demo.example', role: 'manages sales: for records and dashboards' },
  { username: 'sam@demo.example', role: 'sells: for the first request' },
  { username: 'ada@demo.example', role: 'administers: for configuration as files' },
] as const;

const PAGES = new Intl.ListFormat('en', { type: 'disjunction' }).format(
  APP_CLIENTS.map(({ path, purpose }) => `<a href="${path}">${purpose}</a>`),
);

type HomeConfig = Pick<Config, 'seedDemo' | 'developmentOnProduction' | 'demoPassword'>;

/** Both forms of the page. */
export function home(baseUrl: string, config: HomeConfig): { html: SharedAnswer; json: SharedAnswer } {
  const api = apiUrl(baseUrl);
  const links = {
    api,
    documents: `${baseUrl}${LATEST_DOCUMENTS_PATH}`,
    reference: `${baseUrl}${REFERENCE_PATH}`,
    openapi: `${api}/openapi.json`,
    capabilities: `${api}/capabilities`,
    scopes: `${api}/scopes`,
    ...Object.fromEntries(APP_CLIENTS.map(({ path }) => [path.slice(1), baseUrl + path])),
    account: `${baseUrl}/account`,
    authorizationServer: `${baseUrl}/.well-known/oauth-authorization-server`,
    protectedResource: protectedResourceUrl(baseUrl, API_PREFIX),
    health: `${baseUrl}/healthz`,
    readiness: `${baseUrl}/readyz`,
  };
  const body = JSON.stringify({ name: PRODUCT, apiVersion: API_VERSION, links });
  return {
    html: kept(HTML_TYPE, PAGE.render(PRODUCT, content(baseUrl, config)), KEPT_SECONDS, {
      headers: PAGE.headers,
      variesOn: ['Accept'],
    }),
    json: kept('application/json', body, KEPT_SECONDS, { variesOn: ['Accept'] }),
  };
}

function content(baseUrl: string, config: HomeConfig): string {
  const api = `${baseUrl}${API_PREFIX}`;
  const address = escapeHtml(api);
  return `<h1>${PRODUCT}</h1>
<p class="lead">A business-management platform for many tenants behind one public HTTP API: every tenant models its own
objects, fields, permissions and rules. Applications sign people in with OAuth 2.0 and then do what those people may.</p>
<h2 id="start">Start here</h2>
<ol class="steps">
<li class="card"><h3>Open a page</h3>
<p>Sign in to ${PAGES}. <a href="/account">Your account</a> has your passkeys and the applications that act in your
name.</p></li>
<li class="card"><h3>Make the first request</h3>
<p><a href="${LATEST_DOCUMENTS_PATH}guides/first-request">From sign-in to the first record</a>: the whole walk, with reasons, errors and
clean-up. <a href="${LATEST_DOCUMENTS_PATH}">The documents</a> have all guides and the reference.</p></li>
<li class="card"><h3>Call the API</h3>
<p>It is at <code>${address}</code>. With an access token from the
<a href="/.well-known/oauth-authorization-server">authorization server</a>, ask who you are:</p>
<pre tabindex="0"><code>curl -s ${address}/identity \\
  -H "Authorization: Bearer $TOKEN"</code></pre></li>
</ol>
${demo(baseUrl, config)}<h2 id="more">For programs and operators</h2>
<ul>
<li><a href="${REFERENCE_PATH}">API reference</a>: every operation, on one page</li>
<li><a href="${API_PREFIX}/openapi.json">The same in OpenAPI</a>, for code generators</li>
<li><a href="${API_PREFIX}/capabilities">Capabilities</a>: operations, limits and rates</li>
<li><a href="${API_PREFIX}/scopes">Scopes</a>: what an application may ask for</li>
<li><a href="${protectedResourceUrl('', API_PREFIX)}">The API as a protected resource</a>, for OAuth clients</li>
<li><a href="/healthz">Health</a> and <a href="/readyz">readiness</a></li>
</ul>`;
}

/** How to sign in to the demo, where there is one: neither in production nor on a database that production uses. */
function demo(baseUrl: string, { seedDemo, developmentOnProduction, demoPassword }: HomeConfig): string {
  if (!seedDemo || developmentOnProduction) return '';
  const password =
    demoPassword === DEFAULT_DEMO_PASSWORD
      ? `<code class="whole">${DEFAULT_DEMO_PASSWORD}</code>`
      : 'the one in <code>DEMO_PASSWORD</code> of this platform';
  const rows = DEMO_USERS.map(
    ({ username, role }) => `<tr><th scope="row"><code>${username}</code></th><td>${role}</td></tr>`,
  ).join('\n');
  return `<h2 id="demo">Sign in to the demo</h2>
<p>There are two demo tenants with sample records. The password of all their people is ${password}.</p>
<div class="scroll"><table>
<thead><tr><th scope="col">Username</th><th scope="col">Who</th></tr></thead>
<tbody>
${rows}
</tbody>
</table></div>
<p>In the folder of the platform, this prints an access token:</p>
<pre tabindex="0"><code>npm run --silent token -- --user sam@demo.example --base-url ${escapeHtml(baseUrl)}</code></pre>
`;
}
