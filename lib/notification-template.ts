/**
 * Texts of notifications with placeholders: `{actor}`, and `{record.<Field>}` for fields of the record. A brace that is none
 * stands twice. Source: docs/reference/metadata.md#types.
 */

/** `field`: of the record; null: the user who acts. */
interface Placeholder {
  readonly field: string | null;
}

interface Template {
  readonly parts: readonly (string | Placeholder)[];
  /** Position of the first brace that belongs to no placeholder, in UTF-16 units; null: there is none. */
  readonly mistake: number | null;
}

const BRACES = /\{\{|\}\}|\{(?:actor|record\.([A-Za-z][A-Za-z0-9_]{0,39}))\}|[{}]/g;

/** Reads a text in linear time. */
export function readTemplate(text: string): Template {
  const parts: (string | Placeholder)[] = [];
  let mistake: number | null = null;
  let end = 0;
  for (const { 0: found, 1: field = null, index } of text.matchAll(BRACES)) {
    parts.push(text.slice(end, index));
    end = index + found.length;
    if (found.length === 1) mistake ??= index;
    else if (found === '{{' || found === '}}') parts.push(found.slice(1));
    else parts.push({ field });
  }
  parts.push(text.slice(end));
  return { parts: parts.filter((part) => part !== ''), mistake };
}

/** The fields that a text shows. */
export const fieldsOfTemplate = (text: string): string[] => [
  ...new Set(readTemplate(text).parts.flatMap((part) => (typeof part === 'string' ? [] : (part.field ?? [])))),
];

/** The text with these values. */
export const filledTemplate = (text: string, shownFor: (field: string | null) => string): string =>
  readTemplate(text)
    .parts.map((part) => (typeof part === 'string' ? part : shownFor(part.field)))
    .join('');
