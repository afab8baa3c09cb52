/** The secret of a webhook, which the API shows once. */
import { announce, button, element, fill } from '../../shared/elements.js';

/** @import { SubscriptionWithSecret } from './types.d.ts' */

/** @param {SubscriptionWithSecret} subscription */
export function secretPart({ secret, publicKey }) {
  if (secret === null && publicKey === null)
    return element(
      'section',
      { class: 'card secret' },
      element('h2', {}, 'The secret was shown before'),
      element('p', {}, 'It was in an answer that has not arrived here. Replace the secret to get another one.'),
    );
  const words =
    publicKey === null
      ? 'The receiver verifies deliveries with it. Store it there now: it is not shown again.'
      : 'The receiver verifies deliveries with it. It is no secret.';
  return element(
    'section',
    { class: 'card secret', 'aria-labelledby': 'secret-heading' },
    element('h2', { id: 'secret-heading' }, publicKey === null ? 'Signing secret' : 'Public key'),
    element('p', {}, words),
    ...(publicKey === null ? copied('Secret', secret ?? '') : copied('Public key', publicKey)),
  );
}

/**
 * @param {string} label
 * @param {string} value
 */
function copied(label, value) {
  const id = `copied-${label.toLowerCase().replaceAll(' ', '-')}`;
  const input = /** @type {HTMLInputElement} */ (
    element('input', { id, value, readonly: true, autocomplete: 'off', spellcheck: 'false', class: 'copied' })
  );
  const said = element('span', { class: 'hint' });
  const copy = async () => {
    input.select();
    const isCopied = await navigator.clipboard.writeText(value).then(
      () => true,
      () => false,
    );
    const words = isCopied ? `${label} copied` : 'Copy the selected text with your keyboard.';
    fill(said, words);
    announce(words);
  };
  return [
    element('label', { for: id }, label),
    input,
    element(
      'div',
      { class: 'actions' },
      button(`Copy the ${label.toLowerCase()}`, () => void copy(), { class: 'quiet small' }),
      said,
    ),
  ];
}
