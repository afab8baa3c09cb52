/** Language tags (BCP 47). */

/** The tag in its usual spelling; null: no language tag. */
export function localeOf(text: string): string | null {
  try {
    return Intl.getCanonicalLocales(text)[0] ?? null;
  } catch {
    return null;
  }
}

/** A language tag in its usual spelling, such as `pt-BR`. */
export const isLocale = (text: string): boolean => localeOf(text) === text;
