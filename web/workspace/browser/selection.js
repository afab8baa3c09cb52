/** Selected records of a list: one field of all is changed, or all are deleted, and each says what became of it. */
import { call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { inputOf, isEntered, Unreadable } from './inputs.js';
import { addressOf, EXACT } from './objects.js';
import { nameOf } from './values.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { Field, ObjectType, RecordData, WrittenRow } from './types.d.ts' */

/** As many as one request writes. */
const SELECTED_MAX = 200;

/**
 * @param {ObjectType} type
 * @param {Person} person
 * @param {() => void} reload shows the list anew
 */
export function selectionOf(type, person, reload) {
  const { updateable, deletable } = type.capabilities;
  const fields = updateable
    ? type.fields.filter((field) => field.updateable && isEntered(field) && !field.stateField)
    : [];
  const offered = fields.length > 0 || deletable;
  /** @type {Map<string, RecordData>} */
  const chosen = new Map();
  /** Records that are shown, with their boxes, in their order. @type {{ record: RecordData, box: HTMLInputElement }[]} */
  let shown = [];
  /** Index of the box that was changed last: a range begins there. */
  let from = 0;
  let isWriting = false;
  const all = /** @type {HTMLInputElement} */ (
    element('input', {
      type: 'checkbox',
      'aria-label': say('selectAll'),
      change: () => {
        for (const { box } of shown) pick(box, all.checked);
        draw();
      },
    })
  );
  const count = element('strong', {});
  const place = element('div', {});
  const bar = element(
    'div',
    { class: 'selected card', role: 'group', 'aria-label': say('selection'), hidden: true },
    count,
    ...(fields.length > 0 ? [button(say('changeField'), () => askForChange(), { class: 'quiet small' })] : []),
    ...(deletable ? [button(say('delete'), () => askToDelete(), { class: 'quiet small danger' })] : []),
    button(say('clearSelection'), () => choose(false), { class: 'quiet small' }),
  );

  /**
   * @param {HTMLInputElement} box
   * @param {boolean} checked
   */
  const pick = (box, checked) => {
    const found = shown.find((one) => one.box === box);
    if (!found) return;
    if (checked && !chosen.has(found.record.id) && chosen.size >= SELECTED_MAX) {
      box.checked = false;
      return announce(say('selectedMax')(SELECTED_MAX));
    }
    box.checked = checked;
    if (checked) chosen.set(found.record.id, found.record);
    else chosen.delete(found.record.id);
  };
  /** @param {boolean} checked */
  const choose = (checked) => {
    for (const { box } of shown) pick(box, checked);
    draw();
    all.focus();
  };
  const draw = () => {
    bar.hidden = chosen.size === 0;
    count.textContent = say('selected')(chosen.size);
    all.checked = shown.length > 0 && chosen.size === shown.length;
    all.indeterminate = chosen.size > 0 && !all.checked;
    if (chosen.size > 0) announce(count.textContent);
  };

  /** @param {RecordData} record */
  const cell = (record) => {
    const box = /** @type {HTMLInputElement} */ (
      element('input', {
        type: 'checkbox',
        'aria-label': say('select')(nameOf(record)),
        click: (event) => {
          const at = shown.findIndex((one) => one.box === box);
          const range = /** @type {MouseEvent} */ (event).shiftKey
            ? [Math.min(from, at), Math.max(from, at)]
            : [at, at];
          for (const one of shown.slice(range[0], Number(range[1]) + 1)) pick(one.box, box.checked);
          from = at;
          draw();
        },
      })
    );
    shown.push({ record, box });
    return element('td', { role: 'cell', class: 'pick' }, box);
  };

  /**
   * @param {'update' | 'delete'} operation
   * @param {Record<string, unknown>} [values]
   */
  const write = async (operation, values) => {
    if (isWriting) return;
    isWriting = true;
    const records = [...chosen.values()];
    try {
      /** @type {{ results: WrittenRow[] }} */
      const { results } = await call('/composite/records', {
        body: {
          objectApiName: type.apiName,
          operation,
          allOrNone: false,
          records: records.map(({ id, _etag }) => ({ id, ifMatch: _etag, ...(values ? { fields: values } : {}) })),
        },
        accept: EXACT,
        key: crypto.randomUUID(),
      });
      reload();
      showBox(place, outcome(operation, records, results));
    } catch (error) {
      showBox(place, failureBox(say('stepFailed'), error));
    } finally {
      isWriting = false;
    }
  };

  /**
   * @param {'update' | 'delete'} operation
   * @param {readonly RecordData[]} records
   * @param {readonly WrittenRow[]} results
   */
  const outcome = (operation, records, results) => {
    const done = results.filter(({ errors }) => errors.length === 0);
    const title = say(operation === 'update' ? 'changedOf' : 'deletedOf')(done.length, results.length);
    announce(title);
    // Those that failed come first: they need something to be done.
    const rows = results.toSorted((a, b) => b.errors.length - a.errors.length);
    return element(
      'div',
      { class: 'card confirm outcome', role: 'group', 'aria-label': title },
      element('h2', {}, title),
      element(
        'ul',
        {},
        ...rows.map(({ index, errors }) => {
          const record = /** @type {RecordData} */ (records[index]);
          const name = foreign(nameOf(record));
          const isGone = operation === 'delete' && errors.length === 0;
          return element(
            'li',
            {},
            isGone ? name : element('a', { href: addressOf(type.apiName, record.id) }, name),
            ': ',
            errors.length === 0
              ? say('rowDone')
              : element('span', { class: 'wrong' }, foreign(errors.map(wordOf).join(' '))),
          );
        }),
      ),
      element(
        'div',
        { class: 'actions' },
        button(say('close'), () => fill(place), { class: 'quiet small' }),
      ),
    );
  };

  const askForChange = () => {
    const [first] = fields;
    if (!first) return;
    let input = inputOf(first, person, 'new-value');
    let field = first;
    const value = element('div', { class: 'field' });
    const wrong = element('p', { class: 'wrong', hidden: true });
    const select = /** @type {HTMLSelectElement} */ (
      element(
        'select',
        {
          id: 'changed-field',
          change: () => {
            field = fields.find(({ apiName }) => apiName === select.value) ?? first;
            drawValue();
          },
        },
        ...fields.map(({ apiName, label }) => element('option', { value: apiName }, label)),
      )
    );
    const drawValue = () => {
      input = inputOf(field, person, 'new-value');
      wrong.hidden = true;
      const words = element('label', { for: 'new-value', id: 'new-value-label' }, say('newValue'));
      if (input.part.getAttribute('role') === 'group') {
        input.part.setAttribute('aria-labelledby', 'new-value-label');
        words.removeAttribute('for');
      }
      fill(value, words, input.part, wrong);
    };
    drawValue();
    const form = element(
      'form',
      {
        class: 'card confirm',
        'aria-label': say('changeSelected')(chosen.size),
        novalidate: true,
        submit: (event) => {
          event.preventDefault();
          try {
            void write('update', { [field.apiName]: input.value() });
          } catch (error) {
            if (!(error instanceof Unreadable)) throw error;
            wrong.textContent = error.message;
            wrong.hidden = false;
            input.focus();
          }
        },
      },
      element('h2', {}, say('changeSelected')(chosen.size)),
      element(
        'div',
        { class: 'entries' },
        element('div', { class: 'field' }, element('label', { for: 'changed-field' }, say('field')), select),
        value,
      ),
      element(
        'div',
        { class: 'actions' },
        element('button', { class: 'small' }, say('changeNow')(chosen.size)),
        button(say('back'), () => fill(place), { class: 'quiet small' }),
      ),
    );
    showBox(place, form);
    select.focus();
  };

  const askToDelete = () => {
    const question = say('deleteSelected')(chosen.size);
    showBox(
      place,
      element(
        'div',
        { class: 'card confirm', role: 'group', 'aria-label': question },
        element('h2', {}, question),
        element('p', {}, say('deleteHint')),
        element(
          'div',
          { class: 'actions' },
          button(say('delete'), () => void write('delete'), { class: 'small danger' }),
          button(say('back'), () => fill(place), { class: 'quiet small' }),
        ),
      ),
    );
  };

  return {
    offered,
    bar,
    place,
    cell,
    head: () => element('th', { scope: 'col', role: 'columnheader', class: 'pick' }, all),
    /** The list shows other records. */
    reset: () => {
      chosen.clear();
      shown = [];
      from = 0;
      draw();
      fill(place);
    },
  };
}

/** @param {WrittenRow['errors'][number]} error */
const wordOf = ({ code, message }) => say('violations')[code] ?? message;
