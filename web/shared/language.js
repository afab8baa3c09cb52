/** The language of a page: its texts, its header, and what it says of itself. */
import { isGerman, speak } from './words.js';

/** Links of the header in German, by address. */
const HEADER = {
  '#main': 'Zum Inhalt springen',
  '/': 'Start',
  '/app': 'Datensätze',
  '/dashboards': 'Dashboards',
  '/import': 'Importe',
  '/approvals': 'Freigaben',
  '/events': 'Webhooks',
  '/admin': 'Verwaltung',
  '/account': 'Konto',
  '/oauth2/logout': 'Abmelden',
};

/**
 * The page goes on in the language of a user.
 * @param {string} locale
 */
export function speakTo(locale) {
  speak(locale);
  document.documentElement.lang = isGerman() ? 'de' : 'en';
  for (const [address, text] of Object.entries(HEADER))
    for (const link of document.querySelectorAll(`.skip[href="${address}"], header nav [href="${address}"]`)) {
      if (!(link instanceof HTMLElement)) continue;
      link.dataset['english'] ??= link.textContent;
      link.textContent = isGerman() ? text : link.dataset['english'];
    }
}
