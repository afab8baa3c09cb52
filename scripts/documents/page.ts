/** One page of the documents: its Markdown is served as it is, and laid out as HTML. */
export interface Page {
  /** Below the folder of the version and without a suffix: `guides/first-request`. */
  readonly path: string;
  readonly section: Section;
  readonly title: string;
  /** The first sentences, as plain text. */
  readonly summary: string;
  /** Links lead to other files of the version alone. */
  readonly markdown: string;
}

export type Section = 'start' | 'guides' | 'reference' | 'operations' | 'errors';

/** Names and texts of the files of a version, below its folder. */
export type Files = ReadonlyMap<string, string>;

/** The way from one page to the folder of the version: `../` for each folder that it is in. */
export const rootOf = ({ path }: Pick<Page, 'path'>): string => '../'.repeat(path.split('/').length - 1);

/** A page with its heading as the title, and its first paragraph as the summary. */
export function page(path: string, section: Section, markdown: string): Page {
  const [, title = path] = /^# (.+)$/m.exec(markdown) ?? [];
  const [, first = ''] = /^# .+\n+(?:#.+\n+)*((?!#|```|\|)[\s\S]+?)(?:\n\n|\n*$)/.exec(markdown) ?? [];
  return { path, section, title: plain(title), summary: plain(first), markdown };
}

/** Markdown of a line as plain text. */
const plain = (markdown: string): string =>
  markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
