/** The pages that the gateway itself answers: one stylesheet in each, allowed by its hash, and no script. */
import { DASHBOARDS } from '../contracts/auth.ts';
import { LATEST_DOCUMENTS_PATH } from '../lib/addresses.ts';
import { framed, ICON_LINK, inlineStyle } from '../lib/values/page-frame.ts';

const NAV = `<a href="${LATEST_DOCUMENTS_PATH}">Documents</a><a href="${DASHBOARDS.path}">${DASHBOARDS.title}</a><a href="/account">Account</a>`;

/** Pages with one stylesheet. */
interface PageKind {
  /** Headers that go with each of them. */
  readonly headers: Readonly<Record<string, string>>;
  /** `title` is text, `main` HTML. */
  render(title: string, main: string): string;
}

/** `listed`: search engines may list the pages. */
export function pageKind(css: string, { listed = false } = {}): PageKind {
  const { element, source } = inlineStyle(css);
  const policy = `default-src 'none'; style-src ${source}; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`;
  return {
    headers: { 'Content-Security-Policy': policy, 'Referrer-Policy': 'same-origin', 'X-Frame-Options': 'DENY' },
    render: (title, main) => framed({ title, main, head: `${ICON_LINK}\n${element}`, home: '/', nav: NAV, listed }),
  };
}
