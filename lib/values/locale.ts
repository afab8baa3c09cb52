/** Language tags (BCP 47). */

/** As long as fields for one are. Of longer ones the engine compares each part with all others. */
const TAG_MAX_CHARS = 35;

/** The tag in its usual spelling; null: no language tag, or one that is too long. */
export function localeOf(text: string): string | null {
  if (text.length > TAG_MAX_CHARS) return null;
  try {
    return Intl.getCanonicalLocales(text)[0] ?? null;
  } catch {
    return null;
  }
}

/** A language tag in its usual spelling, such as `pt-BR`. */
export const isLocale = (text: string): boolean => localeOf(text) === text;
