/** The frame of every page: a head, a header with the mark, one main landmark, and a footer where there is one. */
import { hash } from 'node:crypto';
import { escapeHtml } from './html.ts';
import { MARK } from './page-design.ts';

export const PRODUCT = 'ERP platform';
/** Path at which every gateway serves `ICON`. */
export const ICON_PATH = '/favicon.svg';

/** `title` is text, everything else HTML. */
interface FramedPage {
  title: string;
  main: string;
  /** More of the head: the stylesheet, scripts, links. */
  head: string;
  /** Address that the mark leads to; null: nowhere. */
  home: string | null;
  /** Links in the header. With them comes one that skips them. */
  nav?: string;
  footer?: string;
  /** Attributes of the body and of the main landmark. */
  bodyAttributes?: string;
  mainAttributes?: string;
  /** Between the footer and the end of the body. */
  afterwards?: string;
  /** For search engines; others are asked not to list the page. */
  listed?: boolean;
}

export function framed(page: FramedPage): string {
  const { title, home, nav } = page;
  const heading = title === PRODUCT ? PRODUCT : `${title} · ${PRODUCT}`;
  const mark = `${MARK}<span>${PRODUCT}</span>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${page.listed ? '' : '<meta name="robots" content="noindex">\n'}<title>${escapeHtml(heading)}</title>
${page.head}
</head>
<body${attributes(page.bodyAttributes)}>
${nav === undefined ? '' : '<a class="skip" href="#main">Skip to the content</a>\n'}<header>${home === null ? `<span class="brand">${mark}</span>` : `<a class="brand" href="${escapeHtml(home)}">${mark}</a>`}
${nav === undefined ? '' : `<nav aria-label="Platform">${nav}</nav>\n`}</header>
<main${nav === undefined ? '' : ' id="main" tabindex="-1"'}${attributes(page.mainAttributes)}>
${page.main}
</main>
${page.footer === undefined ? '' : `<footer>${page.footer}</footer>\n`}${page.afterwards ?? ''}</body>
</html>
`;
}

const attributes = (given: string | undefined): string => (given === undefined ? '' : ` ${given}`);

/** The icon of a page that a gateway answers. */
export const ICON_LINK = `<link rel="icon" type="image/svg+xml" href="${ICON_PATH}">`;

/** A stylesheet that stands in the page, and the source that allows it in the page's Content-Security-Policy. */
export function inlineStyle(css: string): { element: string; source: string } {
  return { element: `<style>${css}</style>`, source: `'sha256-${hash('sha256', css, 'base64')}'` };
}

/** Headings of errors for people, by status. */
export const ERROR_TITLES = {
  404: 'Page not found',
  405: 'Method not allowed',
  503: 'Not available at this moment',
} as const;
