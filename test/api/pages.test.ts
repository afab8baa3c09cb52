/** Pages for browsers, and answers for programs at the same addresses: every link resolves. */
import assert from 'node:assert/strict';
import { API_VERSION } from '../../lib/addresses.ts';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import { tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
/** More than the number of pages: reaching it means an endless chain of addresses. */
const PAGES_MAX = 5_000;
const AT_ONCE = 8;

describe('pages for browsers', function () {
  this.timeout(180_000);
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  const browse = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(new URL(path, platform.baseUrl), { redirect: 'manual', headers: { accept: BROWSER }, ...init });

  const documents = (): string => `${platform.baseUrl}/versions/${API_VERSION}/docs/`;

  /** Addresses of this platform in a page, as a browser reads them; the fragment stays. */
  const linksIn = (html: string): string[] =>
    [...html.matchAll(/<(?:a|link|script|img)\b[^>]*?\s(?:href|src)="([^"]*)"/g)].map(([, to = '']) =>
      to.replaceAll('&amp;', '&'),
    );

  /** Links of Markdown outside of code. */
  const linksInMarkdown = (text: string): string[] =>
    [...text.replace(/^```[\s\S]*?^```|`[^`\n]*`/gm, '').matchAll(/\]\(([^()\s]+)\)/g)].map(([, to = '']) => to);

  /** Members of JSON that are addresses by their name. Those of `servers` are base URLs; examples need a token. */
  function linksInJson(content: unknown): string[] {
    if (typeof content !== 'object' || content === null) return [];
    return Object.entries(content).flatMap(([name, value]) => {
      if (name === 'servers' || name === 'example') return [];
      return typeof value === 'string' && /^(?:url|\$id)$|MetadataUrl$|^metadataUrl$/.test(name)
        ? [value.replace('{base_url}', platform.baseUrl)]
        : linksInJson(value);
    });
  }

  function linksOf(contentType: string, text: string, path: string): string[] {
    if (contentType.startsWith('text/html')) return linksIn(text);
    if (contentType.startsWith('text/markdown') || path.endsWith('/llms.txt')) return linksInMarkdown(text);
    return contentType.startsWith('application/json') ? linksInJson(JSON.parse(text)) : [];
  }

  it('link to existing pages and anchors, as do Markdown and JSON', async () => {
    const failures = [`${platform.baseUrl}/nothing/here`, `${platform.baseUrl}/oauth2/nothing`];
    const start = [`${platform.baseUrl}/`, `${platform.baseUrl}/llms.txt`, ...failures];
    const waiting: { to: string; from: string }[] = start.map((to) => ({ to, from: 'the start' }));
    interface Opened {
      url: string;
      /** Anchors of a page; null: it has none. */
      ids: ReadonlySet<string> | null;
    }
    const found = new Map<string, Promise<Opened | null>>();
    const broken: string[] = [];

    const open = async (address: string): Promise<Opened | null> => {
      const response = await browse(address);
      const text = await response.text();
      const location = response.headers.get('location');
      // Sign-in ends the crawl: it needs a user.
      if (response.status >= 300 && response.status < 400 && location) {
        const to = new URL(location, address);
        return to.origin !== platform.baseUrl || to.pathname.startsWith('/oauth2/')
          ? { url: address, ids: null }
          : look(to);
      }
      if (response.status !== 200 && !failures.includes(address)) return null;
      const contentType = response.headers.get('content-type') ?? '';
      for (const link of linksOf(contentType, text, new URL(address).pathname)) {
        const to = URL.parse(link, address);
        if (!to) broken.push(`${address} → ${link}`);
        else if (to.origin === platform.baseUrl && to.href !== address) waiting.push({ to: to.href, from: address });
      }
      const ids = contentType.startsWith('text/html')
        ? new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id))
        : null;
      return { url: address, ids };
    };
    const look = (url: URL): Promise<Opened | null> => {
      const address = url.origin + url.pathname + url.search;
      let answer = found.get(address);
      if (!answer) found.set(address, (answer = open(address)));
      return answer;
    };
    /** An anchor in a text is that of the page rendered from it. */
    const placesOf = async (page: Opened): Promise<ReadonlySet<string> | null> =>
      page.ids ??
      (page.url.endsWith('.md') ? ((await look(new URL(page.url.replace(/md$/, 'html'))))?.ids ?? null) : null);
    const work = async (): Promise<void> => {
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        assert.ok(found.size < PAGES_MAX, 'pages without end');
        const url = new URL(next.to);
        const page = await look(url);
        const place = decodeURIComponent(url.hash.slice(1));
        const places = page && place !== '' ? await placesOf(page) : null;
        if (!page || (places && !places.has(place))) broken.push(`${next.from} → ${next.to}`);
      }
    };
    // Workers end when the queue is empty; further rounds handle what others have added.
    while (waiting.length > 0) await Promise.all(Array.from({ length: AT_ONCE }, work));
    assert.deepEqual([...new Set(broken)], []);
    for (const path of ['/dashboards', '/account', '/api/v1/openapi.json', '/healthz'])
      assert.ok(found.has(platform.baseUrl + path), path);
    for (const [end, least] of Object.entries({
      '.html': 200,
      '.md': 200,
      '.schema.json': 15,
      '/ai-manifest.json': 1,
    })) {
      const visited = [...found.keys()].filter((address) => address.startsWith(documents()) && address.endsWith(end));
      assert.ok(visited.length >= least, `${visited.length} documents ${end}`);
    }
  });

  it('every error links to its page by the address in its body', async () => {
    const answer = await fetch(`${platform.baseUrl}/api/v1/nothing`);
    const { code, type } = (await answer.json()) as { code: string; type: string };
    assert.ok(type.startsWith(platform.baseUrl) && type.endsWith(code), type);
    for (const each of Object.keys(CATALOGUE)) {
      const page = await fetch(type.replace(code, each), { headers: { accept: BROWSER } });
      assert.equal(page.status, 200, each);
      assert.ok((await page.text()).includes(each), each);
    }
  });

  it('links for programs resolve as well', async () => {
    const { links } = (await (await fetch(platform.baseUrl)).json()) as { links: Record<string, string> };
    for (const [name, address] of Object.entries(links)) {
      if (name === 'api') continue;
      const { status } = await fetch(address, { redirect: 'manual', headers: { accept: 'application/json' } });
      assert.ok(status < 400, `${name}: ${status}`);
    }
  });

  it('the home page is the same for all visitors, signed in or not', async () => {
    const token = await tokenFor(platform.baseUrl, 'ada');
    for (const accept of [BROWSER, '*/*']) {
      const anonymous = await browse('/', { headers: { accept } });
      const signedIn = await browse('/', { headers: { accept, authorization: `Bearer ${token}` } });
      assert.equal(await signedIn.text(), await anonymous.text());
      assert.equal(signedIn.headers.get('etag'), anonymous.headers.get('etag'));
    }
  });

  it('users named on the home page can sign in with its password', async () => {
    const html = await (await browse('/')).text();
    assert.ok(html.includes('<code class="whole">demo-password</code>'));
    const users = [...html.matchAll(/href="\/app\?as=([^"]+)"/g)].map(([, username = '']) =>
      decodeURIComponent(username),
    );
    assert.ok(users.length > 1);
    for (const username of users) assert.ok(await tokenFor(platform.baseUrl, username), username);
  });

  it('errors of sign-in have the common design, the request id, and a link onward', async () => {
    for (const [path, status, init] of [
      ['/oauth2/nothing', 404, {}],
      ['/account', 405, { method: 'PUT' }],
      ['/oauth2/interaction/unknown', 400, {}],
    ] as const) {
      const response = await browse(path, init);
      const html = await response.text();
      assert.equal(response.status, status, path);
      assert.ok(html.includes(`<code>${response.headers.get('x-request-id')}</code>`), path);
      assert.match(html, /<a class="brand" href="\/">[\s\S]*<h1>[\s\S]*<a href="\/">Start page<\/a>/, path);
    }
    const program = await fetch(`${platform.baseUrl}/oauth2/nothing`);
    assert.equal(((await program.json()) as { error: string }).error, 'not_found');
    assert.equal((await browse('/account', { method: 'PUT' })).headers.get('allow'), 'GET, HEAD, POST');
  });
});
