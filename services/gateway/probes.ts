/** What operators and curious people find outside the API: health, readiness, metrics, and a page that points on. */
import type { Exchange } from './exchange.ts';
import type { Gauges, Metrics } from './metrics.ts';
import { API_VERSION, commonHeaders, send } from './reply.ts';

export interface ProbeSources {
  readonly baseUrl: string;
  readonly metrics: Metrics;
  readonly gauges: () => Gauges;
  /** What has to work, and whether it does. */
  readonly readiness: () => Promise<Record<string, boolean>>;
}

const PROBES = new Map<string, (x: Exchange, sources: ProbeSources) => void | Promise<void>>([
  ['/healthz', (x, sources) => json(x, sources, 200, { status: 'ok' })],
  [
    '/readyz',
    async (x, sources) => {
      const checks = await sources.readiness();
      const ready = Object.values(checks).every(Boolean);
      json(x, sources, ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', checks });
    },
  ],
  [
    '/metrics',
    (x, sources) =>
      text(x, sources, 200, 'text/plain; version=0.0.4; charset=utf-8', sources.metrics.text(sources.gauges())),
  ],
  ['/', welcome],
]);

export const isProbe = (x: Exchange): boolean =>
  PROBES.has(x.path) && (x.method === 'GET' || x.method === 'HEAD') && x.path.length < 10;

export async function answerProbe(x: Exchange, sources: ProbeSources): Promise<void> {
  x.label = x.path === '/' ? 'welcome' : x.path.slice(1);
  await PROBES.get(x.path)!(x, sources);
}

function welcome(x: Exchange, sources: ProbeSources): void {
  const api = `${sources.baseUrl}/api/v1`;
  const links = {
    api,
    openapi: `${api}/openapi.json`,
    capabilities: `${api}/capabilities`,
    scopes: `${api}/scopes`,
    authorizationServer: `${sources.baseUrl}/.well-known/oauth-authorization-server`,
    health: `${sources.baseUrl}/healthz`,
  };
  if (!x.req.headers.accept?.includes('text/html')) {
    json(x, sources, 200, { name: 'ERP platform', apiVersion: API_VERSION, links });
    return;
  }
  const items = Object.entries(links)
    .map(([name, url]) => `<li>${name}: <a href="${html(url)}">${html(url)}</a></li>`)
    .join('');
  text(
    x,
    sources,
    200,
    'text/html; charset=utf-8',
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
      `<title>ERP platform</title><style>body{font:16px/1.6 system-ui,sans-serif;max-width:44rem;margin:3rem auto;` +
      `padding:0 1rem;color-scheme:light dark}</style><main><h1>ERP platform</h1><p>This is the public API, version ` +
      `${API_VERSION}. Get an access token from the authorization server and start with ` +
      `<code>GET ${html(api)}/identity</code>.</p><ul>${items}</ul></main></html>`,
  );
}

const html = (value: string): string =>
  value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const json = (x: Exchange, sources: ProbeSources, status: number, body: object): void =>
  text(x, sources, status, 'application/json', JSON.stringify(body));

function text(x: Exchange, { baseUrl }: ProbeSources, status: number, contentType: string, body: string): void {
  const headers = commonHeaders(x, { baseUrl, now: Date.now() }, undefined);
  headers.push('Content-Type', contentType);
  if (status === 503) headers.push('Retry-After', '1');
  if (contentType.startsWith('text/html'))
    headers.push('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'");
  send(x, status, headers, Buffer.from(body));
}
