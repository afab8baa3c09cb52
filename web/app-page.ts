/** A page that is one document without data at each of its addresses, with the files that it loads. */
import { type Assets, pagePolicy } from './assets.ts';

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

export const APP_PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': pagePolicy(),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
