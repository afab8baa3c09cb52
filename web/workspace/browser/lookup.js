/** A reference that is chosen by a search as one types (the combobox of the ARIA authoring practices). */
import { call } from '../../shared/api.js';
import { announce, element, fill, foreign } from '../../shared/elements.js';
import { namesOf } from './objects.js';
import { nameOf } from './values.js';
import { say } from './words.js';

/** @import { Input, RecordPage } from './types.d.ts' */

const OFFERED = 8;
const TYPING_MS = 200;
const SEARCH_MIN = 2;

/**
 * @param {string} apiName of the object that is referred to
 * @param {string} id
 * @returns {Input}
 */
export function lookup(apiName, id) {
  /** @type {string | null} */
  let chosen = null;
  let chosenName = '';
  /** @type {{ id: string, name: string }[]} */
  let offered = [];
  let at = -1;
  let typing = 0;
  let asking = new AbortController();
  const list = element('ul', {
    id: `${id}-list`,
    role: 'listbox',
    class: 'offers',
    hidden: true,
    'aria-label': say('found')(0),
  });
  const input = /** @type {HTMLInputElement} */ (
    element('input', {
      id,
      role: 'combobox',
      autocomplete: 'off',
      spellcheck: 'false',
      'aria-expanded': 'false',
      'aria-autocomplete': 'list',
      'aria-controls': `${id}-list`,
      placeholder: say('lookupHint'),
      input: () => {
        clearTimeout(typing);
        if (input.value.trim() === '') chosen = null;
        typing = window.setTimeout(() => void offer(), TYPING_MS);
      },
      blur: () => {
        clearTimeout(typing);
        close();
        // What was typed and not chosen is no record.
        if (input.value.trim() === '') chosenName = '';
        input.value = chosenName;
      },
      keydown: (event) => press(/** @type {KeyboardEvent} */ (event)),
    })
  );
  const close = () => {
    asking.abort();
    list.hidden = true;
    at = -1;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  /** @param {number} index */
  const choose = (index) => {
    const found = offered[index];
    if (!found) return;
    chosen = found.id;
    chosenName = found.name;
    input.value = found.name;
    close();
    input.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const mark = () => {
    for (const [index, option] of [...list.children].entries()) {
      option.setAttribute('aria-selected', String(index === at));
      if (index === at) option.scrollIntoView({ block: 'nearest' });
    }
    if (at >= 0) input.setAttribute('aria-activedescendant', `${id}-${at}`);
    else input.removeAttribute('aria-activedescendant');
  };
  const offer = async () => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const search = input.value.trim();
    try {
      /** @type {RecordPage} */
      const { records } = await call(`/data/${apiName}/query`, {
        body: { fields: ['name'], take: OFFERED, ...(search.length >= SEARCH_MIN ? { search } : {}) },
        signal,
      });
      offered = records.map((record) => ({ id: record.id, name: nameOf(record) }));
    } catch {
      if (signal.aborted) return;
      offered = [];
    }
    at = -1;
    list.setAttribute('aria-label', say('found')(offered.length));
    fill(
      list,
      ...(offered.length === 0
        ? [element('li', { role: 'option', 'aria-disabled': 'true', 'aria-selected': 'false' }, say('lookupNone'))]
        : offered.map(({ name }, index) =>
            element(
              'li',
              {
                id: `${id}-${index}`,
                role: 'option',
                'aria-selected': 'false',
                // Before the input loses the focus.
                mousedown: (event) => {
                  event.preventDefault();
                  choose(index);
                },
              },
              foreign(name),
            ),
          )),
    );
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    announce(offered.length === 0 ? say('lookupNone') : say('found')(offered.length));
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (list.hidden) return void offer();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      at = offered.length === 0 ? -1 : (at + step + offered.length) % offered.length;
      mark();
    } else if (event.key === 'Enter' && !list.hidden && at >= 0) {
      event.preventDefault();
      choose(at);
    } else if (event.key === 'Escape' && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  return {
    part: element('div', { class: 'lookup' }, input, list),
    value: () => (input.value.trim() === '' ? null : chosen),
    set: (value) => {
      chosen = value === null || value === undefined ? null : String(value);
      chosenName = '';
      input.value = '';
      const wanted = chosen;
      if (wanted === null) return;
      input.value = chosenName = '…';
      void namesOf(apiName, [wanted])
        .catch(() => new Map())
        .then((names) => {
          if (chosen !== wanted) return;
          input.value = chosenName = names.get(wanted) ?? wanted;
        });
    },
    focus: () => input.focus(),
  };
}
