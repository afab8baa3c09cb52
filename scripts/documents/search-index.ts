/** The index that browsers and assistants search without a server: one entry for each section of a page. */
import MiniSearch from 'minisearch';
import type { Rendered } from './markdown.ts';
import type { Page } from './page.ts';

/** Characters of a section that are shown with a result. */
const EXCERPT_CHARS = 160;
/** Readers of the index need these, so they are stored beside it. */
const OPTIONS = { fields: ['title', 'heading', 'text'], storeFields: ['path', 'page', 'heading', 'excerpt'] };

export function searchIndex(pages: readonly { page: Page; rendered: Rendered }[]): string {
  const index = new MiniSearch(OPTIONS);
  for (const { page, rendered } of pages)
    for (const [i, text] of rendered.texts.entries()) {
      const heading = rendered.headings[i - 1];
      const whole = text.replace(/\s+/g, ' ').trim();
      // Before the first heading there is nothing; a section that has only others is found by them.
      if (!heading || (whole === '' && heading.level > 1)) continue;
      const top = heading.level === 1;
      index.add({
        id: top ? page.path : `${page.path}#${heading.id}`,
        path: top ? `${page.path}.html` : `${page.path}.html#${heading.id}`,
        page: page.title,
        // The page as a whole is what its title leads to, not each of its sections.
        title: top ? page.title : '',
        heading: top ? '' : heading.text,
        excerpt: beginning(whole),
        text: whole,
      });
    }
  return JSON.stringify({ options: OPTIONS, index });
}

/** Whole words. */
const beginning = (text: string): string =>
  text.length <= EXCERPT_CHARS ? text : `${text.slice(0, EXCERPT_CHARS).replace(/\s+\S*$/, '')} …`;
