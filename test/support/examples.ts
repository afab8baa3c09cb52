/** The examples of the documents: every fenced block, named by its page and the heading that it stands under. */
import { read, repositoryFiles } from './sources.ts';

interface Example {
  /** Such as `docs/reference/querying.md#filters`, with ` 2` behind the second one of a section. */
  readonly name: string;
  readonly file: string;
  /** `sh`, `json`, `yaml`, …; empty where nothing is said. */
  readonly language: string;
  readonly text: string;
}

/** Pages that readers follow step by step. */
const PAGES = /^(?:README|CONTRIBUTING)\.md$|^docs\/(?:guides|reference)\/[\w-]+\.md$/;

export const examplesOf = (file: string): Example[] => {
  const found: Example[] = [];
  const counts = new Map<string, number>();
  let heading = '';
  let open: { language: string; indent: string; lines: string[] } | undefined;
  for (const line of read(file).split('\n')) {
    const fence = /^( *)```(\w*)$/.exec(line);
    if (open && fence) {
      const section = `${file}#${slug(heading)}`;
      const count = (counts.get(section) ?? 0) + 1;
      counts.set(section, count);
      const text = open.lines.map((one) => `${one.slice(open?.indent.length)}\n`).join('');
      found.push({ name: count === 1 ? section : `${section} ${count}`, file, language: open.language, text });
      open = undefined;
    } else if (open) open.lines.push(line);
    else if (fence) open = { language: fence[2] ?? '', indent: fence[1] ?? '', lines: [] };
    else heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
  }
  return found;
};

/** The text of the example of this name. */
export function exampleNamed(name: string): string {
  const found = examplesOf(name.split('#')[0] ?? '').find((one) => one.name === name);
  if (!found) throw new Error(`There is no example ${name}.`);
  return found.text;
}

/** Values that differ each time that something is printed, and what stands for them. */
const VALUES =
  /(?<lines>^[^\S\n]*…\n)|(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))|(?<request>req_[0-9A-Z]{26})|(?<cut>\b[0-9a-f]{4,}…)|(?<any>…)|(?<number>\d+)/gm;
const STANDS: Readonly<Record<string, string>> = {
  lines: '(?:.*\\n)*?',
  id: '[0-9a-f-]{36}',
  time: '\\d{4}-\\d\\d-\\d\\dT\\S+',
  request: 'req_[0-9A-Z]{26}',
  cut: '[0-9a-f]+',
  any: '.*',
  number: '\\d+',
};

/** Unlike RegExp.escape it leaves spaces, so that a failure can be read. */
const literally = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Matches what a command prints as the example shows it: with other ids, times and numbers, and anything in place of `…`. */
export function likeExample(text: string): RegExp {
  let pattern = '';
  let at = 0;
  for (const { 0: value, index, groups } of text.matchAll(VALUES)) {
    const [kind] = Object.entries(groups!).find(([, found]) => found !== undefined)!;
    pattern += literally(text.slice(at, index)) + STANDS[kind];
    at = index + value.length;
  }
  return new RegExp(pattern + literally(text.slice(at)));
}

const slug = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .trim()
    .replace(/\s+/g, '-');

export const allExamples = (): Example[] =>
  repositoryFiles()
    .filter((path) => PAGES.test(path))
    .sort()
    .flatMap(examplesOf);
