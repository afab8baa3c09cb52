/** All files of a version of the documents, from the sources of this repository. Pure, but for reading them. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { EVENT_TYPE_NAMES, eventSchema } from '../../contracts/event-types.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { API_VERSION } from '../../lib/addresses.ts';
import { CATALOGUE, RESERVED_CODES } from '../../lib/errors/catalogue.ts';
import { membersOf } from '../../lib/json/objects.ts';
import { DESIGN, HIGHLIGHTED, PROSE, TABLES } from '../../lib/values/page-design.ts';
import { CHECKSUMS } from '../../mixins/documents/archives.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';
import { KINDS } from '../../services/metadata/kinds/registry.ts';
import { publishedSchema } from '../../services/metadata/kinds/schema.ts';
import { asyncapi } from './asyncapi.ts';
import { errorPages } from './error-pages.ts';
import { layOut } from './layout.ts';
import { llmsText } from './llms.ts';
import { manifest } from './manifest.ts';
import { type Lookup, render } from './markdown.ts';
import { operationPages } from './operation-pages.ts';
import { type Files, type Page, page, rootOf } from './page.ts';
import { writtenPages } from './repository.ts';
import { searchIndex } from './search-index.ts';

export const VERSION = API_VERSION;

/** Texts of the files by their names below the folder of the version. */
export function build(): Files {
  const description = apiDescription();
  const pages = allPages(description);
  const rendered = pages.map((one) => ({ page: one, rendered: render(one.markdown, lookupFor(one)) }));
  const files = new Map<string, string>();
  for (const { page: one, rendered: parts } of rendered) {
    files.set(`${one.path}.md`, one.markdown);
    files.set(`${one.path}.html`, layOut(one, parts, { version: VERSION, pages }));
  }
  const version = { pages, openapi: JSON.stringify(description) };
  files.set('openapi.json', version.openapi);
  files.set('ai-manifest.json', pretty(manifest(version)));
  files.set('llms.txt', llmsText(version));
  for (const { type, schema } of KINDS)
    files.set(`metadata/${type}.schema.json`, pretty(publishedSchema(type, schema)));
  files.set('asyncapi.json', pretty(asyncapi()));
  for (const type of EVENT_TYPE_NAMES) files.set(`events/${type}.json`, pretty(eventSchema(type)));
  files.set('search.json', searchIndex(rendered.filter(({ page: one }) => !RESERVED_PAGES.has(one.path))));
  files.set('search.js', own('browser/search.js'));
  files.set('page.js', own('browser/page.js'));
  files.set('searching.js', own('../../mixins/documents/searching.js'));
  files.set('minisearch.js', readFileSync(new URL('../es/index.js', import.meta.resolve('minisearch')), 'utf8'));
  files.set('style.css', `${DESIGN}${PROSE}${TABLES}${HIGHLIGHTED}${own('style.css')}`);
  return files.set(CHECKSUMS, checksums(files));
}

/** Left out of the search: before them comes what can be done instead. */
const RESERVED_PAGES: ReadonlySet<string> = new Set([...RESERVED_CODES].map((code) => `errors/${code}`));

/** Every page, in the order of the navigation. */
export function allPages(description: Record<string, unknown>): Page[] {
  const written = writtenPages();
  const pages = [...written, ...operationPages(OPERATIONS, description), ...errorPages(OPERATIONS)];
  return [page('index', 'start', start(pages)), ...pages];
}

/** The description of the API with addresses below whatever host serves it. */
function apiDescription(): Record<string, unknown> {
  const description = openapi(OPERATIONS, '');
  const info = membersOf(description['info']);
  return { ...description, info: { ...info, contact: { ...membersOf(info['contact']), url: '/' } } };
}

function start(pages: readonly Page[]): string {
  const list = (section: Page['section']): string =>
    pages
      .filter((one) => one.section === section)
      .map(({ path, title, summary }) => `- [${title}](${path}.md): ${lead(summary)}`)
      .join('\n');
  const events = EVENT_TYPE_NAMES.map((type) => `[${type}](events/${type}.json)`).toSorted();
  const kinds = KINDS.map(({ type }) => `[${type}](metadata/${type}.schema.json)`).toSorted();
  return `# ERP platform ${VERSION}

Documents of version ${VERSION} of the API: how to do things, what holds exactly, and every operation, error and kind of
configuration. What is published under a version does not change. Each page is also Markdown, under its name with \`.md\`.

- [From sign-in to the first record](guides/first-request.md) is where to begin.
- [API operations](operations.md) has each operation with an example; [the description](openapi.json) is for generators of
  clients.
- [The assistant manifest](ai-manifest.json) is for programs and assistants: sign-in, operations, rules, workflows and errors
  in one file ([what is in it](reference/assistant-manifest.md)).
- [Errors](reference/errors.md) leads to a page for each code, with its cause and its remedy.
- [Changelog](changelog.md): what has changed.
- \`checksums.txt\` has the SHA-256 of every file of this version.

## Guides

${list('guides')}

## Reference

${list('reference')}

## Schemas of configuration

The JSON Schema of the files of each kind of component: ${kinds.join(', ')}.

## Schemas of events

[The events in AsyncAPI 3.0](asyncapi.json) are for programs that make types of them. The JSON Schema of the data of each type of
[event](reference/events.md): ${events.join(', ')}.
`;
}

const LEAD_CHARS = 60;

/** Description of a page: its first sentence, and the next ones where that is too short. */
function lead(text: string): string {
  let said = '';
  for (const [sentence] of text.matchAll(/.+?[.:?](?:\s+|$)/g)) {
    said += sentence;
    if (said.length >= LEAD_CHARS) break;
  }
  return (said || text).trim().replace(/:$/, '.');
}

/** Inline code leads to the page of what it names. */
function lookupFor(one: Page): Lookup {
  const root = rootOf(one);
  return (code) => {
    const target = NAMED.get(code);
    return target === undefined || target === one.path ? null : `${root}${target}.html`;
  };
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ...Object.keys(CATALOGUE).map((code): [string, string] => [code, `errors/${code}`]),
  ...OPERATIONS.flatMap(({ operationId, method, path }): [string, string][] => [
    [operationId, `operations/${operationId}`],
    [`${method} ${path}`, `operations/${operationId}`],
  ]),
]);

const own = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

const pretty = (content: object): string => `${JSON.stringify(content, null, 2)}\n`;

/** As `sha256sum -c` reads them. */
const checksums = (files: Files): string =>
  [...files]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => `${hash('sha256', text)}  ${name}\n`)
    .join('');
