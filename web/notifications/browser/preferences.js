/** Which notifications arrive on which channel, and when no mails are sent. */
import { answer, call } from '../../shared/api.js';
import { announce, element, fill, foreign } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { hasScope } from '../../shared/sign-in.js';
import { navigation } from './list.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { Channel, Preferences } from './types.d.ts' */
/** @typedef {{ type: string, channel: Channel, input: HTMLInputElement }} Box */

/** @type {[Channel, string][]} */
const CHANNELS = [
  ['inApp', 'Page'],
  ['email', 'Mail'],
  ['webhook', 'Webhook'],
];

/** Types of the platform. */
const TYPES = new Map([
  ['agentApprovalRequested', 'An agent asks for approval'],
  ['bulkJobFailed', 'A job failed'],
  ['bulkJobFinished', 'A job finished'],
  ['calendarEventCanceled', 'An event was canceled, or you are no longer invited'],
  ['calendarEventMoved', 'An event was moved'],
  ['calendarInvitation', 'You are invited to an event'],
  ['deploymentFailed', 'A deployment failed'],
  ['deploymentFinished', 'A deployment finished'],
  ['recordAssigned', 'A record was assigned to you'],
  ['recordShared', 'A record was shared with you'],
  ['webhookSuspended', 'A webhook was suspended'],
]);

/** The first holds for those who have not chosen, as well. */
const DIGESTS = /** @type {const} */ ([
  ['off', 'At once, some minutes apart'],
  ['daily', 'One mail a day, at eight in the morning'],
  ['weekly', 'One mail a week, on Monday at eight'],
]);

const NIGHT = { from: '22:00', to: '07:00' };

/**
 * @param {Place} place
 * @returns {Promise<[title: string, parts: Node[]]>}
 */
export async function showPreferences({ timezone }) {
  /** @type {Preferences} */
  let stored = await call('/notifications/preferences');
  const rows = element('tbody');
  let boxes = fillRows(rows, stored);
  const quiet = quietHours(stored.quietHours, timezone);
  // A sign-in from before the page had it lasts for a while.
  const digest = hasScope('me:read') && hasScope('me:write') ? await digestChoice() : null;
  const said = element('div', { class: 'said' });
  const save = element('button', {}, 'Save');
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    save.toggleAttribute('disabled', true);
    fill(said);
    try {
      const body = { records: changes(stored, boxes), quietHours: quiet.value() };
      stored = await call('/notifications/preferences', {
        method: 'PATCH',
        body,
        key: crypto.randomUUID(),
      });
      boxes = fillRows(rows, stored);
      await digest?.save();
      fill(said, element('p', { class: 'done' }, 'Your preferences are saved.'));
      announce('Your preferences are saved.');
    } catch (error) {
      fill(said, failureBox('The preferences were not saved', error));
    }
    save.toggleAttribute('disabled', false);
    save.focus();
  };
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col' }, 'Type'),
    ...CHANNELS.map(([, label]) => element('th', { scope: 'col' }, label)),
  );
  const form = element(
    'form',
    { submit: (event) => void submit(event) },
    element(
      'table',
      { class: 'preferences card' },
      element('caption', { class: 'visually-hidden' }, 'Where notifications of each type arrive'),
      element('thead', {}, head),
      rows,
    ),
    element('p', { class: 'hint' }, 'Webhooks send notifications to programs of your company.'),
    ...(digest ? [digest.part] : []),
    quiet.part,
    said,
    element('div', { class: 'actions' }, save),
  );
  const title = 'Notification preferences';
  return [title, [element('h1', { tabindex: '-1' }, 'Preferences'), navigation('preferences'), form]];
}

/**
 * @param {Element} rows
 * @param {Preferences} preferences
 * @returns {Box[]}
 */
function fillRows(rows, { records }) {
  /** @type {Box[]} */
  const boxes = [];
  const made = records.map(({ type, channels, locked }) => {
    const label = TYPES.get(type) ?? inWords(type);
    const cells = CHANNELS.map(([channel, name]) => {
      const input = checkbox(channels[channel], { 'aria-label': `${name}: ${label}`, disabled: locked });
      boxes.push({ type, channel, input });
      return element('td', {}, input);
    });
    const hint = locked ? [element('span', { class: 'hint' }, 'Always on: others wait for your decision.')] : [];
    return element('tr', {}, element('th', { scope: 'row' }, foreign(label), ...hint), ...cells);
  });
  fill(rows, ...made);
  return boxes;
}

/**
 * `ServerDown` as "Server down": types of one's own have no label.
 * @param {string} type
 */
const inWords = (type) => {
  const words = type.replaceAll('_', ' ').replaceAll(/(?<=[a-z0-9])(?=[A-Z][a-z])/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1).replaceAll(/ [A-Z](?=[a-z])/g, (word) => word.toLowerCase());
};

/**
 * @param {Preferences} stored
 * @param {Box[]} boxes
 */
const changes = ({ records }, boxes) =>
  records.flatMap(({ type, channels }) => {
    const changed = boxes.filter((box) => box.type === type && box.input.checked !== channels[box.channel]);
    const entries = changed.map(({ channel, input }) => [channel, input.checked]);
    return entries.length > 0 ? [{ type, channels: Object.fromEntries(entries) }] : [];
  });

/** Which is a preference of the profile of the user. */
async function digestChoice() {
  const response = await answer('/me');
  let etag = response.headers.get('etag') ?? '';
  /** @type {string} */
  let stored = (await response.json()).preferences.emailDigest ?? 'off';
  const choices = DIGESTS.map(([value, label]) => {
    const input = /** @type {HTMLInputElement} */ (
      element('input', { type: 'radio', name: 'digest', id: `digest-${value}`, value, checked: value === stored })
    );
    return { input, label };
  });
  const part = element(
    'fieldset',
    { class: 'card' },
    element('legend', { class: 'visually-hidden' }, 'When mails come'),
    element('h2', { 'aria-hidden': 'true' }, 'When mails come'),
    ...choices.map(({ input, label }) =>
      element('p', { class: 'choice' }, input, element('label', { for: input.id }, label)),
    ),
    element(
      'p',
      { class: 'hint' },
      'For no mails, turn off those of each type. Critical notifications are mailed at once.',
    ),
  );
  const save = async () => {
    const wanted = choices.find(({ input }) => input.checked)?.input.value ?? stored;
    if (wanted === stored) return;
    const body = { emailDigest: wanted };
    const saved = await answer('/me/preferences', { method: 'PATCH', body, etag, key: crypto.randomUUID() });
    etag = saved.headers.get('etag') ?? '';
    stored = wanted;
  };
  return { part, save };
}

/**
 * @param {Preferences['quietHours']} stored
 * @param {string} timezone
 */
function quietHours(stored, timezone) {
  const { from, to } = stored ?? NIGHT;
  const [start, end] = [timeField('from', from), timeField('to', to)];
  const on = checkbox(stored !== null, { id: 'quiet', change: () => enable() });
  const enable = () => {
    for (const field of [start, end]) field.disabled = !on.checked;
  };
  enable();
  const part = element(
    'fieldset',
    { class: 'card' },
    element('legend', { class: 'visually-hidden' }, 'Quiet hours'),
    element('h2', { 'aria-hidden': 'true' }, 'Quiet hours'),
    element('p', { class: 'choice' }, on, element('label', { for: 'quiet' }, 'Hold mails until the quiet hours end')),
    element('div', { class: 'hours' }, element('label', {}, 'From', start), element('label', {}, 'To', end)),
    element('p', { class: 'hint' }, `In the time zone ${timezone}. Critical notifications are mailed at once.`),
  );
  return { part, value: () => (on.checked ? { from: start.value, to: end.value } : null) };
}

/**
 * @param {boolean} checked
 * @param {Parameters<typeof element>[1]} attributes
 */
const checkbox = (checked, attributes) =>
  /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox', checked, ...attributes }));

/**
 * @param {string} id
 * @param {string} value
 */
const timeField = (id, value) =>
  /** @type {HTMLInputElement} */ (element('input', { type: 'time', id, value, required: true }));
