/** The languages of mails: another one is a file of this folder and a line here. */
import { languageFor } from '../../../../lib/values/languages.ts';
import { de } from './de.ts';
import { en } from './en.ts';
import type { Language } from './language.ts';

/** English where there is none of these locales. */
export const languageOf = (...locales: readonly (string | null | undefined)[]): Language =>
  languageFor([en, de], ...locales);
