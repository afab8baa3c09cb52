/** A page as HTML: where it is, what is on it, what comes next, and all other pages. It works without a script. */
import { posix } from 'node:path';
import { REFERENCE_PATH } from '../../lib/addresses.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { framed, ICON_LINK } from '../../lib/values/page-frame.ts';
import type { Heading, Rendered } from './markdown.ts';
import { type Page, rootOf } from './page.ts';

interface Site {
  readonly version: string;
  /** All pages in their order. */
  readonly pages: readonly Page[];
}

const SECTIONS: Readonly<Record<Page['section'], { title: string; path: string } | null>> = {
  start: null,
  guides: { title: 'Guides', path: 'index.html#guides' },
  reference: { title: 'Reference', path: 'index.html#reference' },
  operations: { title: 'API operations', path: 'operations.html' },
  errors: { title: 'Errors', path: 'reference/errors.html' },
};

export function layOut(page: Page, { html, headings }: Rendered, { version, pages }: Site): string {
  const root = rootOf(page);
  const markdown = `${posix.basename(page.path)}.md`;
  const contents = tableOfContents(headings);
  return framed({
    title: page.title,
    home: '/',
    head: `<meta name="description" content="${escapeHtml(page.summary)}">
${ICON_LINK}
<link rel="stylesheet" href="${root}style.css">
<link rel="alternate" type="text/markdown" href="${markdown}" title="This page as Markdown">
<script type="module" src="${root}page.js"></script>
<script type="module" src="${root}search.js"></script>`,
    nav: `<a href="${root}index.html">Documents ${version}</a><a href="${REFERENCE_PATH}">API reference</a><a href="#site-pages">All pages</a>`,
    bodyAttributes: `data-root="${root || './'}"`,
    listed: true,
    main: `<div class="columns${contents ? '' : ' without-contents'}">
<div class="top">
<div id="site-search" role="search"></div>
${breadcrumb(page, root)}</div>
${contents}<div class="text">
<article>
${html}</article>
${neighbours(page, root, pages)}<p class="source"><a href="${markdown}">This page as Markdown</a></p>
</div>
<nav id="site-pages" class="pages" aria-label="Documents" tabindex="-1">
${navigation(page, root, pages)}</nav>
</div>`,
  });
}

function breadcrumb(page: Page, root: string): string {
  if (page.path === 'index') return '';
  const section = SECTIONS[page.section];
  const within = section && section.path !== `${page.path}.html` ? section : null;
  const items = [
    `<li><a href="${root}index.html">Documents</a></li>`,
    ...(within ? [`<li><a href="${root}${within.path}">${within.title}</a></li>`] : []),
    `<li aria-current="page">${escapeHtml(page.title)}</li>`,
  ];
  return `<nav class="breadcrumb" aria-label="Breadcrumb"><ol>${items.join('')}</ol></nav>\n`;
}

/** Beside the text; where there is no room for it a line above the text, to be opened. */
function tableOfContents(headings: readonly Heading[]): string {
  const listed = headings.filter(({ level }) => level === 2 || level === 3);
  if (listed.length < 2) return '';
  const items = listed.map(
    ({ level, id, text }) => `<li class="level-${level}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><p aria-hidden="true">On this page</p>
<details><summary>On this page</summary><ul>\n${items.join('\n')}\n</ul></details></nav>\n`;
}

function neighbours(page: Page, root: string, pages: readonly Page[]): string {
  const siblings = pages.filter(({ section }) => section === page.section);
  const at = siblings.indexOf(page);
  const link = (to: Page | undefined, rel: string, word: string): string =>
    to ? `<a rel="${rel}" href="${root}${to.path}.html"><small>${word}</small> ${escapeHtml(to.title)}</a>` : '';
  const links = [link(siblings[at - 1], 'prev', 'Previous'), link(siblings[at + 1], 'next', 'Next')].filter(Boolean);
  return links.length === 0 ? '' : `<nav class="neighbours" aria-label="Neighbouring pages">${links.join('')}</nav>\n`;
}

function navigation(page: Page, root: string, pages: readonly Page[]): string {
  const item = ({ path, title }: { path: string; title: string }): string =>
    `<li><a href="${root}${path}.html"${path === page.path ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`;
  const list = (title: string, section: Page['section']): string =>
    `<h2>${title}</h2>\n<ul>\n${pages
      .filter((one) => one.section === section)
      .map(item)
      .join('\n')}\n</ul>\n`;
  return `<ul>\n${[
    ...pages.filter(({ section }) => section === 'start').map(item),
    item({ path: 'operations', title: 'API operations' }),
    item({ path: 'reference/errors', title: 'Errors' }),
    `<li><a href="${REFERENCE_PATH}">Interactive API reference</a></li>`,
  ].join('\n')}\n</ul>\n${list('Guides', 'guides')}${list('Reference', 'reference')}`;
}
