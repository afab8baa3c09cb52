/** Pages that are written by hand: guides, the reference, the glossary and the changelog. */
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { type Page, page, type Section } from './page.ts';

const ROOT = new URL('../../', import.meta.url);

/**
 * Reading order for beginners: first steps, a business of one's own, how people come in, what other
 * software does, operation. Others follow by name.
 */
export const GUIDES = [
  ...['first-request', 'use-the-command-line', 'model-your-business', 'bring-your-data', 'configuration-as-files'],
  ...[
    'who-sees-what',
    'check-what-is-entered',
    'give-records-a-life',
    'prevent-duplicates',
    'find-out-why',
    'open-a-dashboard',
  ],
  ...['invite-people', 'sign-in-with-a-passkey', 'single-sign-on', 'provision-users'],
  ...[
    'register-an-application',
    'build-an-application',
    'sign-in-a-program',
    'follow-changes',
    'hear-of-what-happens',
    'let-an-agent-work',
    'connect-an-assistant',
  ],
  ...['going-to-production', 'operators'],
];
const REFERENCE = ['http', 'authentication', 'operations', 'records', 'querying', 'errors', 'limits', 'idempotency'];

/** All of them, in the order of the navigation. */
export function writtenPages(): Page[] {
  const sources = [
    ...folder('guides', GUIDES),
    ...folder('reference', REFERENCE),
    { source: 'docs/glossary.md', path: 'glossary', section: 'reference' as const },
    { source: 'CHANGELOG.md', path: 'changelog', section: 'start' as const },
  ];
  const published = new Map(sources.map(({ source, path }) => [source, path]));
  return sources.map(({ source, path, section }) => page(path, section, relink(source, path, published)));
}

interface Source {
  readonly source: string;
  readonly path: string;
  readonly section: Section;
}

function folder(section: 'guides' | 'reference', first: readonly string[]): Source[] {
  const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
  return readdirSync(new URL(`docs/${section}/`, ROOT))
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((name) => ({ source: `docs/${section}/${name}.md`, path: `${section}/${name}`, section }));
}

/** Fenced and inline code, where brackets are no links; and links, whose targets may not be published. */
const CODE_OR_LINK = /^```[\s\S]*?^```$|`[^`\n]+`|\[((?:[^[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)/gm;

/** The text of a source with its links as they are in the version; what is not published becomes text. */
function relink(source: string, path: string, published: ReadonlyMap<string, string>): string {
  const text = readFileSync(new URL(source, ROOT), 'utf8').replaceAll('\r\n', '\n');
  return text.replace(CODE_OR_LINK, (all: string, label: string | undefined, target = '') => {
    if (label === undefined || /^(?:https?:|mailto:|#)/.test(target)) return all;
    const [file = '', anchor] = target.split('#');
    const found = published.get(posix.join(posix.dirname(source), file));
    if (found === undefined) return label;
    const relative = posix.relative(posix.dirname(path), `${found}.md`);
    return `[${label}](${relative}${anchor === undefined ? '' : `#${anchor}`})`;
  });
}
