/** Markdown as HTML, with marked syntax and headings that links can lead to. Raw HTML is shown as text. */
import MarkdownIt, { type MarkdownIt as Renderer, type Token } from 'markdown-it';
import { escapeHtml } from '../../lib/values/html.ts';
import { marked } from './highlighter.ts';

export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly text: string;
}

export interface Rendered {
  readonly html: string;
  readonly headings: readonly Heading[];
  /** Text below each heading; the first one is before any heading. */
  readonly texts: readonly string[];
}

/** Link of inline code that names something with its own page, such as an error code; null: none. */
export type Lookup = (code: string) => string | null;

export function render(markdown: string, lookup: Lookup): Rendered {
  const renderer = rendererWith(lookup);
  const tokens = renderer.parse(markdown, {});
  const headings: Heading[] = [];
  const texts = [''];
  const used = new Map<string, number>();
  for (const [i, token] of tokens.entries()) {
    const next = tokens[i + 1];
    if (token.type === 'heading_open' && next) {
      const text = textOf(next);
      const id = unique(slug(text), used);
      token.attrSet('id', id);
      headings.push({ level: Number(token.tag.slice(1)), id, text });
      texts.push('');
    } else if (token.type === 'inline') {
      for (const child of token.children ?? []) leadToPage(child);
      if (tokens[i - 1]?.type !== 'heading_open') texts[texts.length - 1] += ` ${textOf(token)}`;
    }
  }
  return { html: renderer.renderer.render(tokens, renderer.options, {}), headings, texts };
}

function rendererWith(lookup: Lookup): Renderer {
  const renderer = new MarkdownIt({
    highlight: (code, language) => marked(code, language) ?? escapeHtml(code),
  });
  const { rules } = renderer.renderer;
  // Wide blocks scroll by themselves and are reachable by keyboard.
  rules['table_open'] = () => '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>\n';
  rules['table_close'] = () => '</table></div>\n';
  const { fence, code_inline: code } = rules;
  if (!fence || !code) throw new Error('markdown-it has no rules for code.');
  rules['fence'] = (...given) => fence(...given).replace('<pre>', '<pre tabindex="0">');
  rules['code_inline'] = (tokens, at, ...rest) => {
    const target = isInLink(tokens, at) ? null : lookup(tokens[at]?.content ?? '');
    const html = breakable(code(tokens, at, ...rest));
    return target === null ? html : `<a href="${escapeHtml(target)}">${html}</a>`;
  };
  return renderer;
}

/** Long names may be broken before a slash or a dot: one that is not makes a table wider than its page. */
const breakable = (html: string): string => html.replace(/(?<=[\w}])[./](?=[\w{])/g, '<wbr>$&');

const textOf = ({ children }: Token): string =>
  (children ?? []).map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('');

const isInLink = (tokens: readonly Token[], at: number): boolean =>
  tokens
    .slice(0, at)
    .reduce((depth, { type }) => depth + (type === 'link_open' ? 1 : type === 'link_close' ? -1 : 0), 0) > 0;

/** A link to a Markdown file leads to the page that is laid out from it. */
function leadToPage(token: Token): void {
  if (token.type !== 'link_open') return;
  const target = String(token.attrGet('href') ?? '');
  if (!/^[a-z]+:/.test(target)) token.attrSet('href', target.replace(/\.md(?=#|$)/, '.html'));
}

/** As code hosts make them, so that links to headings work there and here. */
const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

function unique(id: string, used: Map<string, number>): string {
  const times = used.get(id) ?? 0;
  used.set(id, times + 1);
  return times === 0 ? id : `${id}-${times}`;
}
