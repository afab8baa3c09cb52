/** The syntax of examples, marked by highlight.js. Its own types bring those of browsers along, which contradict Node's. */
import { createRequire } from 'node:module';

interface Highlighter {
  registerLanguage(name: string, language: unknown): void;
  highlight(code: string, options: { language: string }): { readonly value: string };
}

const require = createRequire(import.meta.url);
const highlighter = require('highlight.js/lib/core') as Highlighter;

/** Languages of the documents' code blocks, and their grammars. */
const GRAMMARS: ReadonlyMap<string, string> = new Map([
  ['sh', 'bash'],
  ['json', 'json'],
  ['http', 'http'],
  ['sql', 'sql'],
  ['yaml', 'yaml'],
]);
for (const [name, grammar] of GRAMMARS)
  highlighter.registerLanguage(name, require(`highlight.js/lib/languages/${grammar}`));

/** The code as HTML; null for a language without a grammar. */
export const marked = (code: string, language: string): string | null =>
  GRAMMARS.has(language) ? highlighter.highlight(code, { language }).value : null;
