/** Mails in German. */
import type { Every, Language } from './language.ts';

const unknown = 'unbekannt';

const PLACES = ['ersten', 'zweiten', 'dritten', 'vierten', 'fünften'];
const EACH = { day: 'jeden Tag', week: 'jede Woche', month: 'jeden Monat', year: 'jedes Jahr' };
const UNITS = { day: 'Tage', week: 'Wochen', month: 'Monate', year: 'Jahre' };

function everyIn({ unit, interval, weekdays, place, monthDay }: Every): string {
  const period = interval === 1 ? EACH[unit] : `alle ${interval} ${UNITS[unit]}`;
  if (monthDay !== null) return `${period} am ${monthDay}.`;
  if (place !== null) return `${period} am ${PLACES[place - 1] ?? 'letzten'} ${weekdays}`;
  return weekdays === '' ? period : `${period} am ${weekdays}`;
}

const DIGESTS = { daily: 'Tägliche Zusammenfassung', weekly: 'Wöchentliche Zusammenfassung' };
const SEVERITIES = { info: null, warning: 'Warnung', critical: 'Kritisch' };

export const de: Language = {
  tag: 'de',
  greeting: (name) => (name === null ? 'Guten Tag,' : `Guten Tag ${name},`),
  linkBelow: 'Wenn die Schaltfläche nicht funktioniert, öffnen Sie diese Adresse:',
  footer: ({ tenant, host }) =>
    `Gesendet von ${host} zu einem Konto von ${tenant}. Niemand wird Sie je per E-Mail oder Telefon nach Ihrem Passwort fragen.`,
  repetition: ({ every, count, until, exceptions }) =>
    [
      every === null ? 'zu den Zeiten der Kalenderdatei' : everyIn(every),
      until === null ? '' : ` bis ${until}`,
      count === null ? '' : `, ${count}-mal`,
      exceptions ? ', mit Ausnahmen' : '',
    ].join(''),
  kinds: {
    invitation: ({ tenant, signInName, linkEnds }) => ({
      subject: `Ihr Konto bei ${tenant}`,
      title: `Willkommen bei ${tenant}`,
      before: ['Für Sie wurde ein Konto angelegt. Wählen Sie zuerst ein Passwort.'],
      facts: [['Benutzername', signInName]],
      button: 'Passwort wählen',
      after: [
        `Der Link gilt einmal, bis ${linkEnds}. Danach bitten Sie Ihre Administration um einen neuen.`,
        'Sie wissen davon nichts? Dann hat sich vermutlich jemand bei der Adresse vertippt, und Sie müssen nichts tun.',
      ],
    }),
    passwordReset: ({ tenant, signInName, linkEnds }) => ({
      subject: 'Neues Passwort wählen',
      title: 'Neues Passwort wählen',
      before: [`Jemand hat für dieses Konto bei ${tenant} ein neues Passwort angefordert.`],
      facts: [['Benutzername', signInName]],
      button: 'Neues Passwort wählen',
      after: [
        `Der Link gilt einmal, bis ${linkEnds}. Mit einem neuen Passwort werden Sie überall sonst abgemeldet.`,
        'Sie waren das nicht? Dann müssen Sie nichts tun: Ihr Passwort bleibt, wie es ist.',
      ],
    }),
    passwordChanged: ({ tenant, signInName, at }) => ({
      subject: 'Ihr Passwort wurde geändert',
      title: 'Ihr Passwort wurde geändert',
      before: [`Ihr Konto bei ${tenant} hat ein neues Passwort und wurde überall abgemeldet.`],
      facts: [
        ['Benutzername', signInName],
        ['Zeitpunkt', at ?? unknown],
      ],
      after: ['Sie waren das nicht? Dann sagen Sie es sofort Ihrer Administration, auf anderem Weg als per E-Mail.'],
    }),
    addressConfirmation: ({ tenant, signInName, linkEnds }) => ({
      subject: 'E-Mail-Adresse bestätigen',
      title: 'E-Mail-Adresse bestätigen',
      before: [
        `Die E-Mail-Adresse dieses Kontos bei ${tenant} wurde auf die geändert, unter der Sie dies lesen. Bestätigen Sie, dass es Ihre ist: E-Mails und Links, mit denen Sie ein Passwort wählen, gehen ab dann hierher.`,
      ],
      facts: [['Benutzername', signInName]],
      button: 'Adresse bestätigen',
      after: [`Der Link gilt bis ${linkEnds}.`, 'Sie wissen davon nichts? Dann bestätigen Sie es nicht.'],
    }),
    addressChanged: ({ tenant, signInName, newAddress, at, linkEnds }) => ({
      subject: 'Ihre E-Mail-Adresse wird geändert',
      title: 'Ihre E-Mail-Adresse wird geändert',
      before: [
        `Ihr Konto bei ${tenant} hat eine andere E-Mail-Adresse bekommen. Sobald sie dort bestätigt ist, gehen E-Mails dorthin und nicht mehr an diese Adresse.`,
      ],
      facts: [
        ['Benutzername', signInName],
        ['Neue Adresse', newAddress ?? unknown],
        ['Zeitpunkt', at ?? unknown],
      ],
      button: 'Änderung rückgängig machen',
      after: [
        'Sie wissen von der Änderung? Dann müssen Sie nichts tun.',
        `Wenn nicht, machen Sie sie mit dem Link bis ${linkEnds} rückgängig, und sagen Sie es Ihrer Administration.`,
      ],
    }),
    addressUndone: ({ tenant, signInName, at }) => ({
      subject: 'Die Änderung Ihrer E-Mail-Adresse wurde rückgängig gemacht',
      title: 'Die Änderung Ihrer E-Mail-Adresse wurde rückgängig gemacht',
      before: [
        `Die Änderung auf diese Adresse wurde von der früheren aus rückgängig gemacht. E-Mails zu Ihrem Konto bei ${tenant} gehen wieder dorthin, und es wurde überall abgemeldet.`,
      ],
      facts: [
        ['Benutzername', signInName],
        ['Zeitpunkt', at ?? unknown],
      ],
      after: ['Sie wissen davon nichts oder brauchen diese Adresse? Dann fragen Sie Ihre Administration.'],
    }),
    newSignIn: ({ tenant, signInName, at, browser, system, network, host }) => ({
      subject: 'Anmeldung in einem neuen Browser',
      title: 'Anmeldung in einem neuen Browser',
      before: [`Jemand hat sich bei Ihrem Konto von ${tenant} in einem bisher unbekannten Browser angemeldet.`],
      facts: [
        ['Benutzername', signInName],
        ['Zeitpunkt', at ?? unknown],
        ['Browser', [browser, system].filter(Boolean).join(', ') || unknown],
        ['Netz', network ?? unknown],
      ],
      after: [
        'Sie waren das? Dann müssen Sie nichts tun.',
        `Wenn nicht, wählen Sie ein neues Passwort: Geben Sie ${host}/password/forgotten in Ihren Browser ein. Das meldet alle ab. Dann sagen Sie es Ihrer Administration.`,
      ],
    }),
    approvalRequested: ({ tenant, request }) => ({
      subject: 'Eine Anfrage eines Agenten wartet auf Ihre Entscheidung',
      title: 'Eine Anfrage wartet auf Ihre Entscheidung',
      before: [
        `Ein Agent von ${tenant} möchte etwas tun, das ein Mensch genehmigen muss. Sie dürfen darüber entscheiden.`,
      ],
      facts: [
        ['Anwendung', request?.clientName ?? null],
        ['Agent', request?.agentKey ?? unknown],
        ['Im Namen von', request?.inNameOf ?? null],
        ['Anfrage', request?.summary ?? unknown],
        ['Operation', request?.operationId ?? unknown],
        ['Bis', request?.until ?? unknown],
      ],
      button: 'Anfrage ansehen',
      after: [
        'Die Seite fragt nach Ihrer Anmeldung und zeigt, was sich ändern würde. Ohne Entscheidung geschieht nichts.',
      ],
    }),
    notification: ({ tenant, notifications, unsubscribe }) => {
      const { items = [], more = 0, digest = null } = notifications ?? {};
      const [first] = items;
      const count = items.length + more;
      const title = count === 1 && first ? first.title : `${count} neue Benachrichtigungen`;
      return {
        subject: digest === null ? title : `${DIGESTS[digest]}: ${title}`,
        title,
        before:
          count === 1 && first
            ? [first.body]
            : [
                `Bei ${tenant} gibt es Neues für Sie.`,
                ...items.map(({ severity, title, body }) =>
                  [SEVERITIES[severity], title, body].filter(Boolean).join(': '),
                ),
              ],
        facts:
          count === 1 && first
            ? [
                ['Von', first.from],
                ['Dringlichkeit', SEVERITIES[first.severity]],
              ]
            : [],
        button: 'Ihre Benachrichtigungen',
        after: [
          ...(more > 0 ? [`Und ${more} weitere.`] : []),
          `Öffnen Sie diese Adresse, um keine weiteren dieser E-Mails zu erhalten: ${unsubscribe}`,
        ],
      };
    },
    calendarEvent: ({ tenant, host, event }) => {
      const title = event?.title ?? unknown;
      const subject = { invited: 'Einladung', changed: 'Geändert', canceled: 'Abgesagt' }[event?.change ?? 'invited'];
      return {
        subject: `${subject}: ${title}`,
        title,
        before: [
          {
            invited: `${event?.organizer} von ${tenant} lädt Sie ein.`,
            changed: `${event?.organizer} von ${tenant} hat einen Termin geändert, zu dem Sie eingeladen sind.`,
            canceled: `Ein Termin, zu dem ${event?.organizer} von ${tenant} Sie eingeladen hat, findet nicht statt.`,
          }[event?.change ?? 'invited'],
        ],
        facts: [
          ['Wann', event?.when ?? unknown],
          ['Wiederholt sich', event?.repeats ?? null],
          ['Wo', event?.location ?? null],
        ],
        after: ['Antworten gehen an die Person, die Sie eingeladen hat.'],
        footer: `Gesendet von ${host} für ${tenant}.`,
      };
    },
  },
};
