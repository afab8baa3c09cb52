/**
 * Merges the platform's version of a file into the file as a person has written it. A file that says the same stays as it
 * is, byte by byte; another one keeps its comments, blank lines and the order of its keys, and takes over what differs.
 */
import {
  type Document,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { jcs } from '../../lib/metadata/manifest.ts';
import { required } from '../../lib/values/required.ts';
import { emitYaml } from '../../lib/yaml/emit.ts';
import { parseYaml, YamlError, type YamlValue } from '../../lib/yaml/parse.ts';

/** Members by which an item of a list is known again when its other members have changed. */
const NAMES = ['apiName', 'key', 'id', 'name', 'value', 'field', 'object', 'type'];

/** The file of a person with the content of `canonical`. */
export function mergeYaml(mine: string, canonical: string): string {
  const [own, kept] = [contentIn(mine), contentIn(canonical)];
  if (own === undefined || kept === undefined) return canonical;
  const wanted = jcs(kept);
  if (jcs(own) === wanted) return mine;
  if (isMapping(own) && emitYaml(own) === mine) return canonical;
  const document = parse(mine);
  const options = writtenAs(document, mine);
  const header = isMap(document.contents) ? takeHeader(document.contents) : null;
  document.contents = merged(document.contents, parse(canonical).contents);
  if (header !== null && isMap(document.contents)) putHeader(document.contents, header);
  const text = withTail(document.toString(options), document.comment, mine);
  const result = contentIn(text);
  return result !== undefined && jcs(result) === wanted ? text : canonical;
}

function contentIn(text: string): YamlValue | undefined {
  try {
    return parseYaml(text).value;
  } catch (error) {
    if (error instanceof YamlError) return undefined;
    throw error;
  }
}

const isMapping = (value: YamlValue): value is { [key: string]: YamlValue } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parse = (text: string): Document<Node> =>
  parseDocument<Node>(text, { version: '1.2', schema: 'core', uniqueKeys: false, logLevel: 'silent' });

const STYLES = [2, 4].flatMap((indent) =>
  [true, false].flatMap((indentSeq) =>
    [true, false].map((flowCollectionPadding) => ({ lineWidth: 0, indent, indentSeq, flowCollectionPadding })),
  ),
);

/** How the file is written: the style in which the document gives it back as it is, or nearly. */
function writtenAs(document: Document<Node>, text: string): (typeof STYLES)[number] {
  const lines = new Set(text.split('\n'));
  const strange = STYLES.map((style) => ({
    style,
    count: document
      .toString(style)
      .split('\n')
      .filter((line) => !lines.has(line)).length,
  }));
  return strange.reduce((best, one) => (one.count < best.count ? one : best)).style;
}

/** The comment at the top is of the file, whatever its first key is. */
function takeHeader({ items }: YAMLMap): string | null {
  const first = items[0]?.key;
  if (!isScalar(first) || !first.commentBefore) return null;
  const header = first.commentBefore;
  first.commentBefore = null;
  return header;
}

function putHeader({ items }: YAMLMap, header: string): void {
  const first = items[0]?.key;
  if (isScalar(first)) first.commentBefore = first.commentBefore ? `${header}\n${first.commentBefore}` : header;
}

/** The document puts a blank line before a comment at the end, also where the file has none. */
function withTail(text: string, comment: string | null, mine: string): string {
  if (!comment) return text;
  const line = `\n#${comment.split('\n')[0]}`;
  const at = text.lastIndexOf(`\n${line}`);
  return at < 0 || mine.includes(`\n${line}`) ? text : text.slice(0, at) + text.slice(at + 1);
}

/** A comment before the first member of a value is kept at the value, though it is about the member. */
function lowerComment(collection: Node | null): void {
  if (!isCollection(collection)) return;
  const [first] = collection.items;
  const node = isPair(first) ? first.key : first;
  if (!collection.commentBefore || !isNode(node) || node.commentBefore) return;
  node.commentBefore = collection.commentBefore;
  collection.commentBefore = null;
}

function merged(mine: Node | null, theirs: Node): Node;
function merged(mine: Node | null, theirs: Node | null): Node | null;
function merged(mine: Node | null, theirs: Node | null): Node | null {
  if (mine === null || theirs === null) return theirs;
  if (isMap<Node, Node | null>(mine) && isMap<Node, Node | null>(theirs)) return mergedMap(mine, theirs);
  if (isSeq<Node>(mine) && isSeq<Node>(theirs)) return mergedList(mine, theirs);
  if (isScalar(mine) && isScalar(theirs) && mine.value === theirs.value) return mine;
  if (mine.commentBefore) theirs.commentBefore = mine.commentBefore;
  // A comment behind a text stands within it when the text turns into a block.
  if (mine.comment) theirs.comment = mine.comment;
  if (mine.spaceBefore) theirs.spaceBefore = true;
  return theirs;
}

type NodePair = Pair<Node, Node | null>;
type NodeMap = YAMLMap<Node, Node | null>;

const keyOf = ({ key }: NodePair): string => String(isScalar(key) ? key.value : key);

function mergedMap(mine: NodeMap, theirs: NodeMap): NodeMap {
  const wanted = new Map(theirs.items.map((pair) => [keyOf(pair), pair]));
  const items = mine.items.filter((pair) => wanted.has(keyOf(pair)));
  const known = new Map(items.map((pair) => [keyOf(pair), pair]));
  for (const [key, pair] of known) {
    lowerComment(pair.value);
    pair.value = merged(pair.value, required(wanted, key).value);
  }
  // New keys stand behind the one that they follow in the canonical form.
  const following = new Map<NodePair | null, NodePair[]>();
  let last: NodePair | null = null;
  for (const [key, pair] of wanted) {
    const own = known.get(key);
    if (own) last = own;
    else following.set(last, [...(following.get(last) ?? []), pair]);
  }
  mine.items = [...(following.get(null) ?? []), ...items.flatMap((pair) => [pair, ...(following.get(pair) ?? [])])];
  return mine;
}

function mergedList(mine: YAMLSeq<Node>, theirs: YAMLSeq<Node>): YAMLSeq<Node> {
  const own = mine.items;
  const same = pool(own, contentOf);
  const found = theirs.items.map((item) => ({ item, own: same.take(contentOf(item)) }));
  const named = pool(
    own.filter((item) => !same.taken.has(item)),
    nameOf,
  );
  mine.items = found.map(({ item, own: equal }) => {
    if (equal) return equal;
    const name = nameOf(item);
    return merged(name === null ? null : named.take(name), item);
  });
  return mine;
}

const contentOf = (node: Node): string => jcs(node.toJSON());

/** The name of an item that is a mapping. */
function nameOf(node: Node): string | null {
  if (!isMap(node)) return null;
  const named = NAMES.map((name) => node.get(name)).find((value) => value !== undefined);
  return typeof named === 'string' ? named : null;
}

/** Items by a text, each of which is given once. */
function pool(items: readonly Node[], textOf: (item: Node) => string | null) {
  const byText = Map.groupBy(items, textOf);
  const taken = new Set<Node>();
  return {
    taken,
    take(text: string): Node | null {
      const item = byText.get(text)?.shift() ?? null;
      if (item) taken.add(item);
      return item;
    },
  };
}
