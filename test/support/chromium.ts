/** Headless Chromium of the machine (Debian: package chromium), driven by playwright-core. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** Name on the PATH, or a path. */
export const CHROMIUM = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium';

const ARGUMENTS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Chromium does not sandbox itself for root, which containers and CI often are.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

export const startChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, headless: true, args: ARGUMENTS });

/** A visitor with a browser of their own: what the page complains about is collected. */
export interface Visitor {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors of scripts, of the console and of the security policy. */
  readonly complaints: string[];
  /** Addresses that were asked for on other hosts. */
  readonly strangers: string[];
}

export async function visit(browser: Browser, baseUrl: string, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  const strangers: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(baseUrl) && !request.url().startsWith('data:')) strangers.push(request.url());
  });
  return { context, page, complaints, strangers };
}

/** Fills in the sign-in form that the page has led to. */
export async function signIn(page: Page, username: string, password = 'demo-password'): Promise<void> {
  await page.fill('#username', username);
  await page.fill('#password', password);
  await page.click('button[value=signIn]');
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Findings that axe calls serious or critical; those of the colours alone where all others were looked for on the same page. */
export async function findings(page: Page, rules: 'all' | 'colours' = 'all'): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE);
  const only = rules === 'colours' ? ", runOnly: ['color-contrast', 'link-in-text-block']" : '';
  const found = (await page.evaluate(`axe.run({ resultTypes: ['violations']${only} })`)) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[];
  };
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}
