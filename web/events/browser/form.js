/** The form of a webhook: a new one, or the settings of one that is there. */
import { answer, CallFailed, call } from '../../shared/api.js';
import { announce, element, fill } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { choiceField, severalField, showViolations, textField } from '../../shared/fields.js';
import { secretPart } from './secret.js';

/** @import { Field } from '../../shared/fields.js' */
/** @import { View } from '../../shared/types.d.ts' */
/** @import { ObjectSummary, Settings, Subscription, SubscriptionWithSecret } from './types.d.ts' */

/** @type {Settings} */
const NEW = {
  name: '',
  url: '',
  eventTypes: ['data.record.created', 'data.record.updated'],
  objects: [],
  payload: 'thin',
  ordering: 'none',
};

/** @returns {Promise<View>} */
export async function showNew() {
  const fields = [
    ...(await settingFields(NEW)),
    choiceField('signing', 'Signatures', 'hmac', [
      ['hmac', 'With a shared secret', 'HMAC-SHA256, which every library of Standard Webhooks verifies.'],
      ['ed25519', 'With a key pair', 'Ed25519: the receiver holds a public key, which is not secret.'],
    ]),
  ];
  const parts = element('div', {});
  // A repeated request, after an answer that was lost, must not make a second webhook.
  let sent = { text: '', key: '' };
  const form = settingForm(fields, 'Create the webhook', 'The webhook was not created', async (body) => {
    const text = JSON.stringify(body);
    if (text !== sent.text) sent = { text, key: crypto.randomUUID() };
    /** @type {SubscriptionWithSecret} */
    const made = await call('/events/subscriptions', { body, key: sent.key });
    const address = `/events/${made.subscriptionId}`;
    // A reload leads to the webhook and not to an empty form.
    history.replaceState(null, '', address);
    const heading = element('h1', { tabindex: '-1' }, 'The webhook is created');
    fill(
      parts,
      heading,
      element('p', { class: 'lead' }, 'Events that happen from now on are sent.'),
      secretPart(made),
      element('p', { class: 'actions' }, element('a', { href: address }, 'Go on to the webhook')),
    );
    heading.focus();
  });
  fill(parts, ...trail(), element('h1', { tabindex: '-1' }, 'New webhook'), form);
  return { title: 'New webhook', parts: [parts] };
}

/**
 * @param {string} id
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showChange(id, go) {
  const path = `/events/subscriptions/${id}`;
  const response = await answer(path);
  const etag = response.headers.get('etag') ?? '';
  /** @type {Subscription} */
  const subscription = await response.json();
  const fields = await settingFields(subscription);
  const form = settingForm(fields, 'Save', 'The settings were not saved', async (body) => {
    await call(path, { method: 'PATCH', body, etag, key: crypto.randomUUID() });
    announce('The settings are saved');
    go(`/events/${id}`);
  });
  const parts = [...trail(subscription), element('h1', { tabindex: '-1' }, 'Settings'), form];
  return { title: `Settings of ${subscription.name}`, parts };
}

/** @param {Subscription} [subscription] */
export function trail(subscription) {
  const own = subscription
    ? [element('a', { href: `/events/${subscription.subscriptionId}` }, element('bdi', {}, subscription.name))]
    : [];
  return [
    element(
      'nav',
      { class: 'trail', 'aria-label': 'Where you are' },
      element('a', { href: '/events' }, 'Webhooks'),
      ...own,
    ),
  ];
}

/**
 * @param {Settings} settings
 * @returns {Promise<Field[]>}
 */
async function settingFields(settings) {
  /** @type {[{ events: { types: string[] } }, { records: ObjectSummary[] }]} */
  const [{ events }, { records }] = await Promise.all([call('/capabilities'), call('/objects')]);
  const types = [...Map.groupBy(events.types, (type) => type.slice(0, type.lastIndexOf('.')))].map(
    ([group, members]) => /** @type {const} */ ([group, members.map((type) => /** @type {const} */ ([type, type]))]),
  );
  const labels = new Map(records.map(({ apiName, label }) => [apiName, label]));
  // Objects that the user cannot see any more stay chosen until they are taken away.
  for (const apiName of settings.objects) if (!labels.has(apiName)) labels.set(apiName, apiName);
  const objects = [...labels].sort(([, a], [, b]) => a.localeCompare(b));
  return [
    textField('name', 'Name', settings.name, { autocomplete: 'off' }, 'For you: nobody else sees your webhooks.'),
    textField(
      'url',
      'Address of the receiver',
      settings.url,
      { type: 'url', autocomplete: 'off', spellcheck: 'false', placeholder: 'https://shop.example/hooks' },
      'A public https address.',
    ),
    severalField('eventTypes', 'Types of events', settings.eventTypes, types, 'At least one.'),
    severalField(
      'objects',
      'Objects',
      settings.objects,
      [['objects', objects]],
      'Only events about records of these objects. None: events about anything.',
    ),
    choiceField('payload', 'Content', settings.payload, [
      ['thin', 'Names of changed fields', 'The receiver asks for values that it needs.'],
      ['full', 'Values before and after', 'Of the fields that you may read.'],
    ]),
    choiceField('ordering', 'Order', settings.ordering, [
      ['none', 'As soon as possible', 'Events may arrive in another order while some are tried again.'],
      [
        'perRecord',
        'In order for each record',
        'An event waits until the earlier ones about the record were delivered.',
      ],
    ]),
  ];
}

/**
 * @param {readonly Field[]} fields
 * @param {string} label
 * @param {string} failed title of the box for errors that belong to no field
 * @param {(body: object) => Promise<void>} store
 */
function settingForm(fields, label, failed, store) {
  const said = element('div', { class: 'said' });
  const save = element('button', {}, label);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    save.toggleAttribute('disabled', true);
    fill(said);
    showViolations(fields, []);
    try {
      await store(Object.fromEntries(fields.map(({ name, value }) => [name, value()])));
    } catch (error) {
      const isBesideFields = error instanceof CallFailed && showViolations(fields, error.errors);
      if (isBesideFields) announce(failed);
      else showBox(said, failureBox(failed, error));
    }
    save.toggleAttribute('disabled', false);
  };
  return element(
    'form',
    { novalidate: true, submit: (event) => void submit(event) },
    ...fields.map(({ part }) => part),
    said,
    element('div', { class: 'actions' }, save),
  );
}
