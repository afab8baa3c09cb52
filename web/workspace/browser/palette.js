/** The command palette: finds records of every object, objects, pages, and what the shown view offers (a combobox in a dialog). */
import { CallFailed, call, inTurn } from '../../shared/api.js';
import { button, element, fill, foreign } from '../../shared/elements.js';
import { addressOf } from './objects.js';
import { nameOf } from './values.js';
import { say } from './words.js';

/** @import { ObjectSummary, RecordPage } from './types.d.ts' */

/**
 * @typedef {object} Command
 * @property {string} label
 * @property {string} [hint]
 * @property {() => void} run
 */
/** @typedef {{ title: string, commands: readonly Command[] }} Group */

const TYPING_MS = 250;
const SEARCH_MIN = 2;
const SEARCH_MAX = 200;
/** Each is a request. */
const OBJECTS_SEARCHED = 40;
const PER_OBJECT = 4;
const RECORDS_SHOWN = 12;
const COMMANDS_SHOWN = 8;
/** Buttons and links by which the shown view can be used; the palette presses them. */
const OFFERED = [
  'main .title > a[href]',
  ...['.title .actions', '.steps .actions'].flatMap((place) => [
    `main ${place} > button:not(:disabled)`,
    `main ${place} > a[href]`,
  ]),
];

/** Without case and accents. @param {string} text */
const folded = (text) =>
  text
    .normalize('NFD')
    .replaceAll(/\p{Mn}/gu, '')
    .toLowerCase();

/**
 * Each typed word begins a word of the text.
 * @param {string} text
 * @param {string} typed
 */
function matches(text, typed) {
  const words = folded(text).split(/[^\p{L}\p{N}]+/u);
  return folded(typed)
    .split(/[^\p{L}\p{N}]+/u)
    .every((part) => words.some((word) => word.startsWith(part)));
}

/**
 * The button that opens the palette; Ctrl+K and Cmd+K do so from everywhere on the page.
 * @param {readonly ObjectSummary[]} known
 * @param {(address: string) => void} go
 */
export function paletteButton(known, go) {
  /** @type {Command[]} */
  let offered = [];
  /** @type {Command[]} */
  let records = [];
  let at = 0;
  let typing = 0;
  let asking = new AbortController();

  const status = element('p', { class: 'hint', role: 'status' });
  const list = element('div', { id: 'palette-list', role: 'listbox', class: 'commands', 'aria-label': say('palette') });
  const input = /** @type {HTMLInputElement} */ (
    element('input', {
      id: 'palette',
      role: 'combobox',
      autocomplete: 'off',
      spellcheck: 'false',
      maxlength: String(SEARCH_MAX),
      'aria-label': say('palette'),
      'aria-autocomplete': 'list',
      'aria-expanded': 'true',
      'aria-controls': 'palette-list',
      placeholder: say('paletteHint'),
      input: () => {
        clearTimeout(typing);
        asking.abort();
        records = [];
        at = 0;
        draw();
        if (typed().length < SEARCH_MIN) return;
        status.textContent = say('loading');
        typing = window.setTimeout(() => void search(typed()), TYPING_MS);
      },
      keydown: (event) => press(/** @type {KeyboardEvent} */ (event)),
    })
  );
  const dialog = /** @type {HTMLDialogElement} */ (
    element(
      'dialog',
      {
        class: 'palette',
        'aria-label': say('palette'),
        close: () => {
          clearTimeout(typing);
          asking.abort();
        },
        // A click beside the box is one on the dialog itself.
        click: ({ target }) => {
          if (target === dialog) dialog.close();
        },
      },
      element(
        'div',
        { class: 'box' },
        element(
          'div',
          { class: 'entry' },
          input,
          button(say('close'), () => dialog.close(), { class: 'quiet small' }),
        ),
        list,
        status,
      ),
    )
  );

  const typed = () => input.value.trim();

  /** @returns {Group[]} */
  const groups = () => {
    /** @param {readonly Command[]} commands */
    const fitting = (commands) =>
      commands.filter(({ label }) => typed() === '' || matches(label, typed())).slice(0, COMMANDS_SHOWN);
    const here = OFFERED.flatMap(pressed);
    const creatable = known
      .filter(({ capabilities }) => capabilities.creatable)
      .map(({ apiName, label }) => ({
        label: say('newRecord')(label),
        run: () => go(addressOf(apiName, undefined, { view: 'new' })),
      }))
      .filter(({ label }) => here.every((one) => one.label !== label));
    return [
      { title: say('onThisPage'), commands: fitting(here) },
      {
        title: say('objects'),
        commands: fitting(known.map(({ apiName, label }) => ({ label, run: () => go(addressOf(apiName)) }))),
      },
      { title: say('create'), commands: fitting(creatable) },
      {
        title: say('pages'),
        commands: fitting(pressed('header nav a[href]:not(#bell, #leave)')),
      },
      // Last, so that nothing moves when they arrive.
      { title: say('home'), commands: records },
    ].filter(({ commands }) => commands.length > 0);
  };

  const draw = () => {
    const shown = groups();
    offered = shown.flatMap(({ commands }) => commands);
    let next = 0;
    fill(
      list,
      ...shown.map(({ title, commands }, group) =>
        element(
          'div',
          { role: 'group', 'aria-labelledby': `palette-group-${group}` },
          element('div', { id: `palette-group-${group}`, class: 'group', role: 'presentation' }, title),
          ...commands.map((command) => option(command, next++)),
        ),
      ),
    );
    list.hidden = offered.length === 0;
    input.setAttribute('aria-expanded', String(!list.hidden));
    mark();
  };

  /**
   * @param {Command} command
   * @param {number} index
   */
  const option = ({ label, hint }, index) =>
    element(
      'div',
      {
        id: `palette-${index}`,
        role: 'option',
        'aria-selected': 'false',
        // The input keeps the focus.
        mousedown: (event) => event.preventDefault(),
        click: () => choose(index),
      },
      foreign(label),
      ...(hint ? [' ', element('span', { class: 'hint' }, foreign(hint))] : []),
    );

  const mark = () => {
    for (const one of list.querySelectorAll('[role=option]')) {
      const active = one.id === `palette-${at}`;
      one.setAttribute('aria-selected', String(active));
      if (active) one.scrollIntoView({ block: 'nearest' });
    }
    if (offered[at]) input.setAttribute('aria-activedescendant', `palette-${at}`);
    else input.removeAttribute('aria-activedescendant');
  };

  /** @param {number} index */
  const choose = (index) => {
    const command = offered[index];
    if (!command) return;
    // First, for closing gives the focus back to where it was.
    dialog.close();
    command.run();
  };

  /** @param {string} text */
  const search = async (text) => {
    asking = new AbortController();
    const { signal } = asking;
    try {
      const found = await findRecords(known, text, signal);
      records = found.map(({ apiName, object, id, name }) => ({
        label: name,
        hint: object,
        run: () => go(addressOf(apiName, id)),
      }));
      draw();
      status.textContent = offered.length === 0 ? say('lookupNone') : say('found')(offered.length);
    } catch (error) {
      if (!signal.aborted) status.textContent = error instanceof Error ? error.message : String(error);
    }
  };

  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const { key, isComposing } = event;
    const last = offered.length - 1;
    if (key === 'ArrowDown') at = at >= last ? 0 : at + 1;
    else if (key === 'ArrowUp') at = at <= 0 ? Math.max(last, 0) : at - 1;
    else if (key === 'PageDown') at = Math.max(Math.min(at + COMMANDS_SHOWN, last), 0);
    else if (key === 'PageUp') at = Math.max(at - COMMANDS_SHOWN, 0);
    else if (key !== 'Enter' || isComposing) return;
    event.preventDefault();
    if (key === 'Enter') choose(at);
    else mark();
  };

  const open = () => {
    input.value = '';
    records = [];
    at = 0;
    status.textContent = say('paletteKeys');
    dialog.showModal();
    draw();
    input.focus();
  };

  document.addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, shiftKey, altKey } = event;
    if (key.toLowerCase() !== 'k' || ctrlKey === metaKey || shiftKey || altKey) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });

  return element(
    'div',
    { class: 'find' },
    element(
      'button',
      {
        type: 'button',
        class: 'quiet small',
        'aria-haspopup': 'dialog',
        'aria-keyshortcuts': 'Control+K Meta+K',
        click: open,
      },
      say('palette'),
      ' ',
      element('kbd', { 'aria-hidden': 'true' }, /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'),
    ),
    dialog,
  );
}

/**
 * Makes a command of each link and button.
 * @param {string} selector
 * @returns {Command[]}
 */
const pressed = (selector) =>
  [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector))].map((one) => ({
    label: (one.textContent ?? '').trim(),
    run: () => one.click(),
  }));

/**
 * Records whose search fields have the words, the object that is shown first; names that begin with them precede others.
 * Not by a composite request: that is stored with its answer like a change.
 * @param {readonly ObjectSummary[]} known
 * @param {string} search
 * @param {AbortSignal} signal
 */
async function findRecords(known, search, signal) {
  const [, , here] = location.pathname.split('/');
  const asked = known
    .toSorted((a, b) => Number(b.apiName === here) - Number(a.apiName === here))
    .slice(0, OBJECTS_SEARCHED);
  const found = await Promise.all(
    asked.map(async ({ apiName, label }) => {
      const body = { fields: ['name'], search, take: PER_OBJECT };
      try {
        /** @type {RecordPage} */
        const { records } = await inTurn(() => call(`/data/${apiName}/query`, { body, signal }));
        return records.map((record) => ({ apiName, object: label, id: record.id, name: nameOf(record) }));
      } catch (error) {
        // An object that cannot be searched has none.
        if (error instanceof CallFailed && !error.passes) return [];
        throw error;
      }
    }),
  );
  const start = folded(search);
  /** @param {{ name: string }} record */
  const rank = ({ name }) => (folded(name).startsWith(start) ? 0 : 1);
  return found
    .flat()
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, RECORDS_SHOWN);
}
