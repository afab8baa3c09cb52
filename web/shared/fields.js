/** Fields of a form that show the errors of the API beside them. */
import { element, fill, foreign } from './elements.js';

/**
 * @typedef {object} Field
 * @property {string} name the property of the body
 * @property {HTMLElement} part
 * @property {() => unknown} value
 * @property {(messages: readonly string[]) => void} refuse none: takes earlier ones away
 * @property {() => void} focus
 */

/**
 * The error and the hint of a control.
 * @param {string} name
 * @param {HTMLElement} control is described by hint and error
 * @param {string} [hint]
 */
export function describe(name, control, hint) {
  const error = element('p', { class: 'wrong', id: `${name}-error`, hidden: true });
  control.setAttribute('aria-describedby', `${name}-error${hint ? ` ${name}-hint` : ''}`);
  const below = [error, ...(hint ? [element('p', { class: 'hint', id: `${name}-hint` }, hint)] : [])];
  /** @param {readonly string[]} messages */
  const refuse = (messages) => {
    error.hidden = messages.length === 0;
    fill(error, foreign(messages.join(' ')));
  };
  return { below, refuse };
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} value
 * @param {Record<string, string>} attributes
 * @param {string} [hint]
 * @returns {Field}
 */
export function textField(name, label, value, attributes, hint) {
  const input = /** @type {HTMLInputElement} */ (element('input', { id: name, value, ...attributes }));
  const { below, refuse } = describe(name, input, hint);
  return {
    name,
    part: element('div', { class: 'field' }, element('label', { for: name }, label), input, ...below),
    value: () => input.value.trim(),
    refuse: (messages) => {
      if (messages.length > 0) input.setAttribute('aria-invalid', 'true');
      else input.removeAttribute('aria-invalid');
      refuse(messages);
    },
    focus: () => input.focus(),
  };
}

/**
 * One of several, each with a hint.
 * @param {string} name
 * @param {string} label
 * @param {string} value
 * @param {readonly (readonly [value: string, label: string, hint: string])[]} choices
 * @returns {Field}
 */
export function choiceField(name, label, value, choices) {
  const made = choices.map(([choice, text, hint]) => {
    const id = `${name}-${choice}`;
    const input = /** @type {HTMLInputElement} */ (
      element('input', {
        ...{ type: 'radio', id, name, value: choice, checked: choice === value, 'aria-describedby': `${id}-hint` },
      })
    );
    const words = element('span', { class: 'hint', id: `${id}-hint` }, hint);
    const part = element(
      'div',
      { class: 'choice' },
      input,
      element('div', {}, element('label', { for: id }, text), words),
    );
    return { input, part };
  });
  const part = element('fieldset', { class: 'card' }, ...legend(label), ...made.map((one) => one.part));
  const { below, refuse } = describe(name, part);
  part.append(...below);
  return {
    name,
    part,
    value: () => made.find(({ input }) => input.checked)?.input.value ?? value,
    refuse,
    focus: () => made[0]?.input.focus(),
  };
}

/**
 * Any of many, in groups.
 * @param {string} name
 * @param {string} label
 * @param {readonly string[]} chosen
 * @param {readonly (readonly [group: string, choices: readonly (readonly [value: string, label: string])[]])[]} groups
 * @param {string} hint
 * @returns {Field}
 */
export function severalField(name, label, chosen, groups, hint) {
  /** @type {HTMLInputElement[]} */
  const inputs = [];
  const drawn = groups.map(([group, choices]) => {
    const boxes = choices.map(([value, text], at) => {
      const id = `${name}-${group}-${at}`;
      const input = /** @type {HTMLInputElement} */ (
        element('input', { type: 'checkbox', id, value, checked: chosen.includes(value) })
      );
      inputs.push(input);
      return element('div', { class: 'choice' }, input, element('label', { for: id }, foreign(text)));
    });
    const list = element('div', { class: 'boxes' }, ...boxes);
    if (groups.length === 1) return list;
    const isOpen = choices.some(([value]) => chosen.includes(value));
    return element('details', { open: isOpen || group === groups[0]?.[0] }, element('summary', {}, group), list);
  });
  const part = element('fieldset', { class: 'card' }, ...legend(label), ...drawn);
  const { below, refuse } = describe(name, part, hint);
  part.append(...below);
  return {
    name,
    part,
    value: () => inputs.filter(({ checked }) => checked).map(({ value }) => value),
    refuse,
    focus: () => part.querySelector('input')?.focus(),
  };
}

/** @param {string} label */
const legend = (label) => [
  element('legend', { class: 'visually-hidden' }, label),
  element('h2', { 'aria-hidden': 'true' }, label),
];

/**
 * Shows each violation beside its field, and moves the focus to the first one.
 * @param {readonly Field[]} fields
 * @param {readonly { message: string, pointer?: string }[]} violations
 * @returns {boolean} whether each has a field
 */
export function showViolations(fields, violations) {
  const byField = Map.groupBy(violations, ({ pointer = '' }) => pointer.split('/')[1] ?? '');
  const refused = fields.filter((field) => {
    const messages = (byField.get(field.name) ?? []).map(({ message }) => withoutName(message, field.name));
    field.refuse(messages);
    return messages.length > 0;
  });
  refused[0]?.focus();
  return refused.length > 0 && refused.length === byField.size;
}

/**
 * The field is named by its label.
 * @param {string} message
 * @param {string} name
 */
function withoutName(message, name) {
  const rest = [`/${name} `, `${name} `].find((beginning) => message.startsWith(beginning));
  const text = rest ? message.slice(rest.length) : message;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
