/**
 * The home page: what this is, what to do first, and where everything else is. A page for people, JSON for programs;
 * made once, and the same for all. It knows nothing of tenants. With the demo on it lists the demo users; the
 * password only while it is the public one of README.md. Production has no demo.
 */

import { type Config, publicDemoPassword } from '../../config/env.ts';
import { APP_CLIENTS, WORKSPACE } from '../../contracts/auth.ts';
import {
  API_PREFIX,
  API_VERSION,
  apiUrl,
  LATEST_DOCUMENTS_PATH,
  protectedResourceUrl,
  REFERENCE_PATH,
} from '../../lib/addresses.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN, PROSE } from '../../lib/values/page-design.ts';
import { PRODUCT } from '../../lib/values/page-frame.ts';
import { HTML_TYPE } from '../assets.ts';
import { kept, type SharedAnswer } from '../kept.ts';
import { pageKind } from '../page-kind.ts';

const KEPT_SECONDS = 300;

const PAGE = pageKind(
  `${DESIGN}${PROSE}
main .lead{font-size:1.15rem;max-width:38rem}
code.whole{white-space:nowrap}
main ul.people{list-style:none;padding:0;margin:1.5rem 0 1rem;display:grid;
grid-template-columns:repeat(auto-fit,minmax(min(13rem,100%),1fr));gap:.75rem}
.people a,a.begin{display:block;padding:.9rem 1.1rem;border-radius:.75rem;text-decoration:none}
.people a{height:100%;border:1px solid var(--line);background:var(--card);color:var(--ink)}
.people strong{display:block;color:var(--accent)}.people span{color:var(--soft);font-size:.925rem}
:is(.people a,a.begin):hover{border-color:var(--accent);text-decoration:underline}
a.begin{display:inline-block;background:var(--accent);color:var(--accent-ink);font-weight:650}
`,
  { listed: true },
);

/** Demo users to begin with; README.md has all of them. */
export const DEMO_USERS = [
  { username: 'sam@demo.example', name: 'Sam', role: 'sells: his customers, offers and invoices' },
  { username: 'mia@demo.example', name: 'Mia', role: 'leads the sales team: its records and dashboards' },
  { username: 'ada@demo.example', name: 'Ada', role: 'administers: people, permissions and settings' },
] as const;

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
  const hasDemo = config.seedDemo && !config.developmentOnProduction;
  const token = hasDemo
    ? `TOKEN=$(npm run -s token -- --user ${DEMO_USERS[0].username} \\\n  --base-url ${escapeHtml(baseUrl)})\n`
    : '';
  return `<h1>${PRODUCT}</h1>
<p class="lead">Customers, orders, invoices and whatever else a company models for itself: people work with them in the
browser, programs and AI agents through one public API, and the same permissions hold for all.</p>
${hasDemo ? demo(config) : `<p><a class="begin" href="${WORKSPACE.path}">Sign in</a></p>\n`}<h2 id="more">For programs and operators</h2>
<p>The API is at <code>${address}</code>. ${hasDemo ? 'In the folder of the platform' : 'With an access token'}:</p>
<pre tabindex="0"><code>${token}curl -s ${address}/identity \\
  -H "Authorization: Bearer $TOKEN"</code></pre>
<ul>
<li><a href="${LATEST_DOCUMENTS_PATH}guides/first-request">From sign-in to the first record</a>, and
<a href="${LATEST_DOCUMENTS_PATH}">all documents</a></li>
<li><a href="${REFERENCE_PATH}">API reference</a>, the same in <a href="${API_PREFIX}/openapi.json">OpenAPI</a>,
<a href="${API_PREFIX}/capabilities">capabilities</a> and <a href="${API_PREFIX}/scopes">scopes</a></li>
<li>For OAuth clients: <a href="/.well-known/oauth-authorization-server">authorization server</a>,
<a href="${protectedResourceUrl('', API_PREFIX)}">protected resource</a></li>
<li>For operators: <a href="/healthz">health</a>, <a href="/readyz">readiness</a></li>
</ul>`;
}

/** Ways into the demo, each with the username filled in. */
function demo(config: HomeConfig): string {
  const password = publicDemoPassword(config);
  const people = DEMO_USERS.map(
    ({ username, name, role }) =>
      `<li><a href="${WORKSPACE.path}?as=${encodeURIComponent(username)}"><strong>Sign in as ${name}</strong>
<span>${role}</span></a></li>`,
  ).join('\n');
  return `<ul class="people" id="demo">
${people}
</ul>
<p>The password of all people of the demo is ${
    password === null
      ? 'the one in <code>DEMO_PASSWORD</code> of this platform'
      : `<code class="whole">${password}</code>`
  }.</p>
`;
}
