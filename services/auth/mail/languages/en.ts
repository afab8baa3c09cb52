/** Mails in English. */
import type { Every, Language } from './language.ts';

const unknown = 'unknown';

const PLACES = ['first', 'second', 'third', 'fourth', 'fifth'];

function everyIn({ unit, interval, weekdays, place, monthDay }: Every): string {
  const period = interval === 1 ? `every ${unit}` : `every ${interval} ${unit}s`;
  if (monthDay !== null) return `${period} on day ${monthDay}`;
  if (place !== null) return `${period} on the ${PLACES[place - 1] ?? 'last'} ${weekdays}`;
  return weekdays === '' ? period : `${period} on ${weekdays}`;
}

const DIGESTS = { daily: 'Daily digest', weekly: 'Weekly digest' };
const SEVERITIES = { info: null, warning: 'Warning', critical: 'Critical' };

export const en: Language = {
  tag: 'en',
  greeting: (name) => (name === null ? 'Hello,' : `Hello ${name},`),
  linkBelow: 'If the button does not work, open this address:',
  footer: ({ tenant, host }) =>
    `Sent by ${host} about an account of ${tenant}. We never ask for your password by mail or telephone.`,
  repetition: ({ every, count, until, exceptions }) =>
    [
      every === null ? 'at the times of the calendar file' : everyIn(every),
      until === null ? '' : ` until ${until}`,
      count === null ? '' : `, ${count} ${count === 1 ? 'time' : 'times'}`,
      exceptions ? ', with exceptions' : '',
    ].join(''),
  kinds: {
    invitation: ({ tenant, signInName, linkEnds }) => ({
      subject: `Your account at ${tenant}`,
      title: `Welcome to ${tenant}`,
      before: ['An administrator has made an account for you. Choose a password to begin.'],
      facts: [['Username', signInName]],
      button: 'Choose a password',
      after: [
        `The link works once, until ${linkEnds}. After that, ask your administrator for a new one.`,
        'You know nothing of this? Then somebody has probably mistyped an address, and you need not do anything.',
      ],
    }),
    passwordReset: ({ tenant, signInName, linkEnds }) => ({
      subject: 'Choose a new password',
      title: 'Choose a new password',
      before: [`Somebody has asked for a new password for this account of ${tenant}.`],
      facts: [['Username', signInName]],
      button: 'Choose a new password',
      after: [
        `The link works once, until ${linkEnds}. A new password signs you out everywhere else.`,
        'It was not you? Then you need not do anything: your password stays as it is.',
      ],
    }),
    passwordChanged: ({ tenant, signInName, at }) => ({
      subject: 'Your password was changed',
      title: 'Your password was changed',
      before: [`Your account of ${tenant} has a new password, and was signed out everywhere.`],
      facts: [
        ['Username', signInName],
        ['When', at ?? unknown],
      ],
      after: ['It was not you? Then tell your administrator at once, by another way than by mail.'],
    }),
    addressConfirmation: ({ tenant, signInName, linkEnds }) => ({
      subject: 'Confirm your mail address',
      title: 'Confirm your mail address',
      before: [
        `The mail address of this account of ${tenant} was changed to the one that you read this at. Confirm that it is yours: mails and links with which you choose a password go here from then on.`,
      ],
      facts: [['Username', signInName]],
      button: 'Confirm this address',
      after: [`The link works until ${linkEnds}.`, 'You know nothing of this? Then do not confirm it.'],
    }),
    addressChanged: ({ tenant, signInName, newAddress, at, linkEnds }) => ({
      subject: 'Your mail address is being changed',
      title: 'Your mail address is being changed',
      before: [
        `Your account of ${tenant} got another mail address. Once it is confirmed there, mails go to that address and not to this one any more.`,
      ],
      facts: [
        ['Username', signInName],
        ['New address', newAddress ?? unknown],
        ['When', at ?? unknown],
      ],
      button: 'Undo the change',
      after: [
        'You know of the change? Then you need not do anything.',
        `If you do not, undo it with the link until ${linkEnds}, and tell your administrator.`,
      ],
    }),
    addressUndone: ({ tenant, signInName, at }) => ({
      subject: 'The change of your mail address was undone',
      title: 'The change of your mail address was undone',
      before: [
        `The change to this address was undone from the earlier one. Mails about your account of ${tenant} go there again, and it was signed out everywhere.`,
      ],
      facts: [
        ['Username', signInName],
        ['When', at ?? unknown],
      ],
      after: ['You know nothing of this, or need the address? Then ask your administrator.'],
    }),
    newSignIn: ({ tenant, signInName, at, browser, system, network, host }) => ({
      subject: 'A sign-in in a new browser',
      title: 'A sign-in in a new browser',
      before: [`Somebody has signed in to your account of ${tenant} in a browser that was not known until now.`],
      facts: [
        ['Username', signInName],
        ['When', at ?? unknown],
        ['Browser', [browser, system].filter(Boolean).join(', ') || unknown],
        ['Network', network ?? unknown],
      ],
      after: [
        'It was you? Then you need not do anything.',
        `If not, choose a new password: type ${host}/password/forgotten into your browser. That signs out everybody. Then tell your administrator.`,
      ],
    }),
    approvalRequested: ({ tenant, request }) => ({
      subject: 'A request of an agent waits for your decision',
      title: 'A request waits for your decision',
      before: [`An agent of ${tenant} asks to do something that a person has to approve. You may decide about it.`],
      facts: [
        ['Application', request?.clientName ?? null],
        ['Agent', request?.agentKey ?? unknown],
        ['In the name of', request?.inNameOf ?? null],
        ['Request', request?.summary ?? unknown],
        ['Operation', request?.operationId ?? unknown],
        ['Until', request?.until ?? unknown],
      ],
      button: 'View the request',
      after: ['The page asks you to sign in, and shows what would change. Without a decision nothing is done.'],
    }),
    notification: ({ tenant, notifications, unsubscribe }) => {
      const { items = [], more = 0, digest = null } = notifications ?? {};
      const [first] = items;
      const count = items.length + more;
      const title = count === 1 && first ? first.title : `${count} new notifications`;
      return {
        subject: digest === null ? title : `${DIGESTS[digest]}: ${title}`,
        title,
        before:
          count === 1 && first
            ? [first.body]
            : [
                `There is news for you at ${tenant}.`,
                ...items.map(({ severity, title, body }) =>
                  [SEVERITIES[severity], title, body].filter(Boolean).join(': '),
                ),
              ],
        facts:
          count === 1 && first
            ? [
                ['From', first.from],
                ['Severity', SEVERITIES[first.severity]],
              ]
            : [],
        button: 'Your notifications',
        after: [
          ...(more > 0 ? [`And ${more} more.`] : []),
          `To get no more of these mails, open this address: ${unsubscribe}`,
        ],
      };
    },
    calendarEvent: ({ tenant, host, event }) => {
      const title = event?.title ?? unknown;
      const subject = { invited: 'Invitation', changed: 'Changed', canceled: 'Canceled' }[event?.change ?? 'invited'];
      return {
        subject: `${subject}: ${title}`,
        title,
        before: [
          {
            invited: `${event?.organizer} of ${tenant} invites you.`,
            changed: `${event?.organizer} of ${tenant} has changed an event to which you are invited.`,
            canceled: `An event to which ${event?.organizer} of ${tenant} has invited you does not take place.`,
          }[event?.change ?? 'invited'],
        ],
        facts: [
          ['When', event?.when ?? unknown],
          ['Repeats', event?.repeats ?? null],
          ['Where', event?.location ?? null],
        ],
        after: ['Answers go to the person who has invited you.'],
        footer: `Sent by ${host} for ${tenant}.`,
      };
    },
  },
};
