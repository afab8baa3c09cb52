/**
 * How the documents are searched, in browsers and by the service mcp alike. The build of the documents puts this beside
 * the index.
 */

/** Of a query: each word is looked up in the whole index. */
const WORDS_MAX = 12;
/** Shorter ones count as they are: with them begins a great part of all words. */
const BEGINNING_MIN_CHARS = 3;
/** Shorter ones are like too many others. */
const LIKE_MIN_CHARS = 5;

/** @typedef {(text: string) => string[]} Tokenize */

/**
 * Options of MiniSearch for a query.
 * @param {string} query
 * @param {Tokenize} tokenize as the index has been made
 */
export function searchOptions(query, tokenize) {
  const words = wordsOf(query, tokenize);
  return {
    tokenize: () => words,
    /** @param {string} word */
    prefix: (word) => word.length >= BEGINNING_MIN_CHARS,
    /** @param {string} word */
    fuzzy: (word) => (word.length >= LIKE_MIN_CHARS ? 0.2 : false),
    maxFuzzy: 2,
    boost: { title: 4, heading: 3 },
    boostDocument,
  };
}

/**
 * Everything has been changed once: what it is like stands elsewhere.
 * @param {unknown} _id
 * @param {string} _word
 * @param {Record<string, unknown>} [section]
 */
const boostDocument = (_id, _word, section) => (String(section?.['path']).startsWith('changelog.') ? 0.1 : 1);

/**
 * Each word once, and the parts of names such as `listRecords`.
 * @param {string} query
 * @param {Tokenize} tokenize
 */
function wordsOf(query, tokenize) {
  const parts = query.replace(/([a-z])([A-Z])/g, '$1 $2');
  const words = tokenize(`${query} ${parts}`.toLowerCase()).filter((word) => word !== '');
  return [...new Set(words)].slice(0, WORDS_MAX);
}
