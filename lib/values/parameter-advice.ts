/** Suggests the parameter that an unknown name probably means. */
import { similarName } from './similar.ts';

/** Names that other APIs give to our parameters, in lower case without separators. */
const NAMES_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  take: ['limit', 'size', 'count', 'top', 'first', 'pagesize', 'perpage', 'maxresults'],
  skip: ['offset', 'start', 'from', 'page', 'pagenumber'],
  cursor: ['after', 'startingafter', 'pagetoken', 'nextcursor', 'next', 'page', 'pagenumber', 'offset'],
  sort: ['order', 'orderby', 'sortby', 'ordering'],
  filters: ['filter', 'where', 'conditions', 'criteria'],
  search: ['q', 'query', 'term', 'text', 'keyword'],
  fields: ['select', 'columns', 'properties', 'attributes', 'only'],
  expand: ['include', 'embed', 'with', 'populate', 'relations'],
  includeTotal: ['total', 'withtotal', 'counttotal', 'includecount'],
};

/** Longer names are not compared. */
const NAME_MAX_CHARS = 40;

/** The end of a message that refuses `name`: ` Did you mean take?`, or nothing. */
export function parameterAdvice(name: string, known: Iterable<string>): string {
  if (name.length > NAME_MAX_CHARS) return '';
  const names = [...known];
  const bare = name.toLowerCase().replace(/[^a-z0-9]/g, '');
  const own = names.find((one) => NAMES_ELSEWHERE[one]?.includes(bare)) ?? similarName(name, names);
  return own === null ? '' : ` Did you mean ${own}?`;
}
