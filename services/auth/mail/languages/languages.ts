/** The languages of mails: another one is a file of this folder and a line here. */
import { de } from './de.ts';
import { en } from './en.ts';
import type { Language } from './language.ts';

const LANGUAGES: readonly Language[] = [en, de];

/** The language of the first of these locales that there is one for; English for all others. */
export function languageOf(...locales: readonly (string | null | undefined)[]): Language {
  for (const locale of locales) {
    const [primary] = (locale ?? '').toLowerCase().split(/[-_]/);
    const found = LANGUAGES.find(({ tag }) => tag === primary);
    if (found) return found;
  }
  return en;
}
