/**
 * Makes elements. What comes from the API becomes text and never markup; the page's policy (Trusted Types) makes
 * anything else fail.
 */

/**
 * @param {string} name
 * @param {Record<string, string | boolean | ((event: Event) => void)>} attributes a function is a listener, by the
 *   name of its event; true is an attribute without a value, false none
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (typeof value === 'function') made.addEventListener(key, value);
    else if (value !== false) made.setAttribute(key, value === true ? '' : value);
  made.append(...children);
  return made;
}

/**
 * A text of unknown language, kept apart so that its direction does not turn the words around it.
 * @param {string} text
 */
export const foreign = (text) => element('bdi', {}, text);

/**
 * @param {Element} parent
 * @param {...(Node | string)} children
 */
export const fill = (parent, ...children) => parent.replaceChildren(...children);

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`There is no element ${id}.`);
  return found;
}

let announcing = 0;

/**
 * Tells a screen reader, without moving the focus.
 * @param {string} text
 */
export function announce(text) {
  const region = byId('announcements');
  clearTimeout(announcing);
  // Screen readers hear a change, so the same text twice needs an empty one between.
  region.textContent = '';
  announcing = window.setTimeout(() => {
    region.textContent = text;
  }, 50);
}

/**
 * The box for what went wrong.
 * @param {string} title
 * @param {string} text
 * @param {...Node} more
 */
export const problem = (title, text, ...more) =>
  element('div', { class: 'problem', role: 'alert' }, element('h2', {}, title), element('p', {}, text), ...more);

/**
 * @param {string} label
 * @param {() => void} act
 * @param {Record<string, string | boolean>} attributes
 */
export const button = (label, act, attributes = {}) =>
  element('button', { type: 'button', class: 'quiet', ...attributes, click: act }, label);
