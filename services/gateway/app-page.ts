/** A page that is one document without data at each of its addresses, with the files that it loads. */
import { type Assets, HTML_TYPE, pagePolicy, sendFile } from './assets.ts';
import type { Exchange } from './exchange.ts';
import { methodNotAllowed, pageNotFound } from './failures.ts';
import type { Gateway } from './gateway.ts';
import { commonHeaders, send } from './reply.ts';

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': pagePolicy(),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

interface AppPage {
  readonly label: string;
  readonly assets: Assets;
  /** Addresses of the document. */
  readonly view: RegExp;
  readonly page: (baseUrl: string) => string;
}

/** Answers the document at each of its addresses, and what it loads. */
export async function answerAppPage(
  x: Exchange,
  gateway: Gateway,
  { label, assets, view, page }: AppPage,
): Promise<void> {
  x.label = label;
  const asset = assets.at(x.path);
  if (!asset && !view.test(x.path)) throw pageNotFound();
  if (x.method !== 'GET' && x.method !== 'HEAD') throw methodNotAllowed();
  if (asset) {
    await sendFile(x, asset, gateway.replyOptions());
    return;
  }
  const headers = commonHeaders(x, gateway.replyOptions(), PAGE_HEADERS);
  headers.push('Content-Type', HTML_TYPE);
  send(x, 200, headers, Buffer.from(page(gateway.baseUrl)));
}
