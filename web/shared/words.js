/** Texts of the pages in English and German: how a page chooses its own, and those that all pages share. */

/** Until the user is known, the language of the browser. */
let german = navigator.language.startsWith('de');

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
 * From now on texts are in the language of a user.
 * @param {string} locale such as `de-CH`; English for all but German
 */
export function speak(locale) {
  german = locale.startsWith('de');
  document.documentElement.lang = german ? 'de' : 'en';
  if (!german) return;
  for (const [address, text] of Object.entries(HEADER))
    for (const link of document.querySelectorAll(`.skip[href="${address}"], header nav [href="${address}"]`))
      link.textContent = text;
}

/**
 * The function that answers texts of a page by their key, in the language of the user.
 * @template {Record<string, unknown>} Texts
 * @param {Texts} english
 * @param {Texts} translated to German
 */
export const texts =
  (english, translated) =>
  /**
   * @template {keyof Texts} Key
   * @param {Key} key
   * @returns {Texts[Key]}
   */
  (key) =>
    (german ? translated : english)[key];
