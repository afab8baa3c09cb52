/** Texts of the pages in English and German: how a page chooses its own, and those that all pages share. */

/** Until the user is known, the language of the browser. */
let german = navigator.language.startsWith('de');

/**
 * From now on texts are in the language of a user.
 * @param {string} locale such as `de-CH`; English for all but German
 */
export function speak(locale) {
  german = locale.startsWith('de');
}

export const isGerman = () => german;

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

const EN = {
  loading: 'Loading…',
  problem: 'Problem',
  tryAgain: 'Try again',
  showMore: 'Show more',
  noMore: 'No more can be shown',
  cancel: 'Cancel',
  signIn: 'Sign in',
  notSignedIn: 'You are not signed in',
  signInRefused: 'The platform does not accept this sign-in. Try again in a moment.',
  signInCanceled: 'You have canceled the sign-in.',
  signInFailed: 'The sign-in did not work. Try again in a moment.',
  signInExpired: 'The sign-in took too long or was used already. Sign in once more.',
  noAnswer: 'The platform cannot be reached. Check your connection and try again.',
  brokenPage: 'Something went wrong on this page.',
  askAdministrator: 'An administrator of your company can change that.',
  whereYouAre: 'Where you are',
  notifications: 'Notifications',
  unread: (/** @type {number} */ count) => `Notifications, ${count} unread`,
  yes: 'Yes',
  no: 'No',
  weekOf: (/** @type {string} */ day) => `Week of ${day}`,
};

/** @type {typeof EN} */
const DE = {
  loading: 'Wird geladen …',
  problem: 'Problem',
  tryAgain: 'Noch einmal versuchen',
  showMore: 'Mehr anzeigen',
  noMore: 'Mehr lässt sich nicht anzeigen',
  cancel: 'Abbrechen',
  signIn: 'Anmelden',
  notSignedIn: 'Sie sind nicht angemeldet',
  signInRefused: 'Die Plattform nimmt diese Anmeldung nicht an. Versuchen Sie es gleich noch einmal.',
  signInCanceled: 'Sie haben die Anmeldung abgebrochen.',
  signInFailed: 'Die Anmeldung hat nicht geklappt. Versuchen Sie es gleich noch einmal.',
  signInExpired: 'Die Anmeldung hat zu lange gedauert oder wurde schon verwendet. Melden Sie sich noch einmal an.',
  noAnswer: 'Die Plattform ist nicht erreichbar. Prüfen Sie Ihre Verbindung, und versuchen Sie es noch einmal.',
  brokenPage: 'Auf dieser Seite ist ein Fehler aufgetreten.',
  askAdministrator: 'Wer Ihr Unternehmen hier verwaltet, kann das ändern.',
  whereYouAre: 'Wo Sie sind',
  notifications: 'Benachrichtigungen',
  unread: (count) => `Benachrichtigungen, ${count} ungelesen`,
  yes: 'Ja',
  no: 'Nein',
  weekOf: (day) => `Woche ab ${day}`,
};

/** Texts that several pages share. */
export const common = texts(EN, DE);
