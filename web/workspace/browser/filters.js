/** Filters of a list: a builder of conditions by the operators that describe names, and what they say in words. */
import { button, element, fill, foreign } from '../../shared/elements.js';
import { inputOf, numberOf } from './inputs.js';
import { lookup } from './lookup.js';
import { isReference, namesOf } from './objects.js';
import { isNumber, written } from './values.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { Condition, Field, Filters, Input, ObjectType } from './types.d.ts' */

const CONDITIONS_MAX = 10;
const NO_VALUE = new Set(['is_blank', 'is_not_blank']);
const LISTS = new Set(['in', 'not_in']);
const DATES = new Set(['date', 'dateTime']);

/**
 * @param {Field} field
 * @param {string} operator
 */
function operatorWord({ fieldType }, operator) {
  const ofDates = /** @type {Record<string, string>} */ (say('dateOperators'));
  const ofAll = /** @type {Record<string, string>} */ (say('operators'));
  return (DATES.has(fieldType) ? ofDates[operator] : undefined) ?? ofAll[operator] ?? operator;
}

/**
 * The value of a condition in words.
 * @param {Field} field
 * @param {unknown} value
 * @param {Person} person
 * @returns {string}
 */
function valueWord(field, value, person) {
  if (Array.isArray(value)) return value.map((one) => valueWord(field, one, person)).join(', ');
  const dates = /** @type {Record<string, string>} */ (say('dates'));
  if (typeof value === 'string' && dates[value]) return dates[value];
  return written(value, field, person);
}

/**
 * The active conditions, each with a button that takes it away.
 * @param {ObjectType} type
 * @param {Filters | null} filters
 * @param {Person} person
 * @param {(filters: Filters) => void} change
 */
export function chips(type, filters, person, change) {
  if (!filters) return [];
  return filters.conditions.map((condition) => {
    const field = type.byName.get(condition.field);
    const value = element('bdi', {});
    const words = element('span', {}, foreign(field?.label ?? condition.field), ' ');
    if (condition.operator === 'in_related') words.append(say('relatedRecords'));
    else if (field) {
      words.append(operatorWord(field, condition.operator), ' ', value);
      if (isReference(field) && !NO_VALUE.has(condition.operator)) void nameValue(value, field, condition);
      else if (!NO_VALUE.has(condition.operator))
        value.textContent =
          condition.operator === 'between'
            ? say('and')(valueWord(field, condition.value, person), valueWord(field, condition.valueTo, person))
            : valueWord(field, condition.value, person);
    }
    const remove = button(
      '×',
      () => change({ ...filters, conditions: filters.conditions.filter((one) => one !== condition) }),
      { class: 'quiet remove', 'aria-label': say('removeFilter')(words.textContent ?? '') },
    );
    return element('span', { class: 'chip' }, words, remove);
  });
}

/**
 * @param {Element} place
 * @param {Field} field
 * @param {Condition} condition
 */
async function nameValue(place, field, { value }) {
  const ids = [value].flat().map(String);
  const names = await namesOf(field.referenceTo[0] ?? '', ids).catch(() => new Map());
  place.textContent = ids.map((id) => names.get(id) ?? id).join(', ');
}

/**
 * @param {ObjectType} type
 * @param {Filters | null} filters
 * @param {Person} person
 * @param {{ apply: (filters: Filters | null) => void, cancel: () => void }} then
 */
export function filterPanel(type, filters, person, { apply, cancel }) {
  const fields = type.fields
    .filter(({ filterOperators }) => filterOperators.some((operator) => operator !== 'in_related'))
    .sort((a, b) => Number(a.system) - Number(b.system) || a.label.localeCompare(b.label, person.locale));
  /** @type {{ part: HTMLElement, read: () => Condition | null }[]} */
  let rows = [];
  const list = element('ol', { class: 'conditions' });
  const redraw = () => {
    fill(list, ...rows.map(({ part }) => part));
    add.toggleAttribute('disabled', rows.length >= CONDITIONS_MAX);
  };
  /** @param {Condition} [given] */
  const addRow = (given) => {
    const made = conditionRow(type, fields, person, given, () => {
      rows = rows.filter((one) => one !== made);
      redraw();
      add.focus();
    });
    rows.push(made);
    redraw();
    return made;
  };
  const add = button(say('addCondition'), () => addRow().part.querySelector('select')?.focus(), {
    class: 'quiet small',
  });
  const logic = /** @type {HTMLSelectElement} */ (
    element(
      'select',
      { 'aria-label': say('filters') },
      element('option', { value: 'and' }, say('matchAll')),
      element('option', { value: 'or', selected: filters?.logic === 'or' }, say('matchAny')),
    )
  );
  for (const condition of filters?.conditions ?? []) addRow(condition);
  if (rows.length === 0) addRow();
  return element(
    'form',
    {
      class: 'card panel',
      'aria-label': say('filters'),
      novalidate: true,
      submit: (event) => {
        event.preventDefault();
        const conditions = rows.flatMap(({ read }, at) => {
          const condition = read();
          return condition ? [{ ...condition, id: `c${at + 1}` }] : [];
        });
        apply(conditions.length === 0 ? null : { logic: logic.value === 'or' ? 'or' : 'and', conditions });
      },
      keydown: (event) => {
        if (/** @type {KeyboardEvent} */ (event).key === 'Escape') cancel();
      },
    },
    list,
    element(
      'div',
      { class: 'actions' },
      add,
      logic,
      element('span', { class: 'spring' }),
      button(say('cancel'), cancel, { class: 'quiet small' }),
      element('button', { class: 'small' }, say('apply')),
    ),
  );
}

let made = 0;

/**
 * @param {ObjectType} type
 * @param {readonly Field[]} fields
 * @param {Person} person
 * @param {Condition | undefined} given
 * @param {() => void} remove
 */
function conditionRow(type, fields, person, given, remove) {
  const id = `condition-${++made}`;
  // A condition about related records, or about a field that is not there, is kept as it came.
  if (given && (given.operator === 'in_related' || !fields.some(({ apiName }) => apiName === given.field))) {
    const label = type.byName.get(given.field)?.label ?? given.field;
    const words = element('span', {}, foreign(label), ' ', say('relatedRecords'));
    const part = element('li', {}, words, removeButton(remove));
    return { part, read: () => given };
  }
  const first = fields.find(({ apiName }) => apiName === (given?.field ?? 'name')) ?? fields[0];
  const fieldSelect = /** @type {HTMLSelectElement} */ (
    element(
      'select',
      { 'aria-label': say('field'), change: () => drawOperators() },
      ...fields.map(({ apiName, label }) =>
        element('option', { value: apiName, selected: apiName === first?.apiName }, label),
      ),
    )
  );
  const operatorSelect = /** @type {HTMLSelectElement} */ (
    element('select', { 'aria-label': say('operator'), change: () => drawValue() })
  );
  const values = element('div', { class: 'values' });
  /** @type {Input[]} */
  let inputs = [];
  const field = () => /** @type {Field} */ (type.byName.get(fieldSelect.value));
  /** @param {string} [chosen] */
  const drawOperators = (chosen) => {
    const operators = field().filterOperators.filter((operator) => operator !== 'in_related');
    const preferred = chosen ?? (operators.includes('contains') ? 'contains' : operators[0]);
    fill(
      operatorSelect,
      ...operators.map((operator) =>
        element('option', { value: operator, selected: operator === preferred }, operatorWord(field(), operator)),
      ),
    );
    drawValue();
  };
  /** @param {Condition} [condition] */
  const drawValue = (condition) => {
    const operator = operatorSelect.value;
    const count = NO_VALUE.has(operator) ? 0 : operator === 'between' ? 2 : 1;
    inputs = Array.from({ length: count }, (_, at) => valueInput(field(), operator, person, `${id}-${at}`));
    for (const [at, { part }] of inputs.entries()) {
      const control = part.matches('input, select, textarea, [role=group]')
        ? part
        : part.querySelector('input, select');
      control?.setAttribute('aria-label', say(at === 0 ? 'value' : 'valueTo'));
    }
    fill(values, ...inputs.map(({ part }) => part));
    if (!condition) return;
    inputs[0]?.set(condition.value ?? null);
    inputs[1]?.set(condition.valueTo ?? null);
  };
  drawOperators(given?.operator);
  if (given) drawValue(given);
  const part = element('li', {}, fieldSelect, operatorSelect, values, removeButton(remove));
  /** @returns {Condition | null} null: it is not filled in */
  const read = () => {
    const [value, valueTo] = inputs.map((input) => input.value());
    const blank = (/** @type {unknown} */ one) =>
      one === null || one === '' || (Array.isArray(one) && one.length === 0);
    if (inputs.length > 0 && blank(value)) return null;
    return {
      id,
      field: fieldSelect.value,
      operator: operatorSelect.value,
      ...(inputs.length > 0 ? { value } : {}),
      ...(inputs.length > 1 ? { valueTo } : {}),
    };
  };
  return { part, read };
}

/** @param {() => void} remove */
const removeButton = (remove) => button('×', remove, { class: 'quiet remove', 'aria-label': say('remove') });

/**
 * @param {Field} field
 * @param {string} operator
 * @param {Person} person
 * @param {string} id
 * @returns {Input}
 */
function valueInput(field, operator, person, id) {
  const { picklistValues, fieldType, apiName } = field;
  if (picklistValues && LISTS.has(operator)) return inputOf({ ...field, fieldType: 'multiPicklist' }, person, id);
  if (fieldType === 'multiPicklist' && operator === 'contains')
    return inputOf({ ...field, fieldType: 'picklist' }, person, id);
  if (LISTS.has(operator)) return listInput(field, person, id);
  if (fieldType === 'boolean') return yesOrNo(id);
  if (DATES.has(fieldType)) return dateInput(id);
  if (isReference(field) || apiName === 'id') return lookup(field.referenceTo[0] ?? '', id);
  const input = inputOf(
    { ...field, fieldType: isNumber(field) ? 'decimal' : picklistValues ? fieldType : 'text' },
    person,
    id,
  );
  if (!isNumber(field)) return input;
  return { ...input, value: () => filterNumber(input.value()) };
}

/** Numbers of conditions are JSON numbers. @param {unknown} value */
const filterNumber = (value) =>
  typeof value === 'string' && value !== '' && !Number.isNaN(Number(value)) ? Number(value) : value;

/**
 * Texts or numbers, separated by commas.
 * @param {Field} field
 * @param {Person} person
 * @param {string} id
 * @returns {Input}
 */
function listInput(field, person, id) {
  if (isReference(field)) {
    const one = lookup(field.referenceTo[0] ?? '', id);
    // Of several, one is shown; all of them stay until another one is chosen.
    /** @type {unknown[]} */
    let several = [];
    return {
      ...one,
      value: () => {
        const chosen = one.value();
        return chosen === several[0] ? several : [chosen].filter((value) => value !== null);
      },
      set: (value) => {
        several = [value ?? []].flat();
        one.set(several[0] ?? null);
      },
    };
  }
  const input = /** @type {HTMLInputElement} */ (element('input', { id, placeholder: say('listHint') }));
  const parts = () =>
    input.value
      .split(',')
      .map((one) => one.trim())
      .filter(Boolean);
  return {
    part: input,
    value: () => (isNumber(field) ? parts().map((one) => filterNumber(numberOf(one, person.locale))) : parts()),
    set: (value) => {
      input.value = [value].flat().join(', ');
    },
    focus: () => input.focus(),
  };
}

/**
 * @param {string} id
 * @returns {Input}
 */
function yesOrNo(id) {
  const select = /** @type {HTMLSelectElement} */ (
    element(
      'select',
      { id },
      element('option', { value: 'true' }, say('yes')),
      element('option', { value: 'false' }, say('no')),
    )
  );
  return {
    part: select,
    value: () => select.value === 'true',
    set: (value) => {
      select.value = String(value === true);
    },
    focus: () => select.focus(),
  };
}

/**
 * A range of days by its name, or a day.
 * @param {string} id
 * @returns {Input}
 */
function dateInput(id) {
  const known = Object.entries(say('dates'));
  const day = /** @type {HTMLInputElement} */ (
    element('input', { type: 'date', id: `${id}-day`, 'aria-label': say('dateIs') })
  );
  const select = /** @type {HTMLSelectElement} */ (
    element(
      'select',
      { id, 'aria-label': say('value'), change: () => drawDay() },
      ...known.map(([word, text]) => element('option', { value: word }, text)),
      element('option', { value: '' }, say('aDay')),
    )
  );
  const drawDay = () => {
    day.hidden = select.value !== '';
  };
  drawDay();
  return {
    part: element('div', { class: 'values' }, select, day),
    value: () => select.value || day.value,
    set: (value) => {
      const text = String(value ?? '');
      const option = [...select.options].find((one) => one.value === text);
      if (!option && text !== '' && !/^\d/.test(text)) select.append(element('option', { value: text }, text));
      select.value = /^\d/.test(text) ? '' : text;
      if (/^\d/.test(text)) day.value = text.slice(0, 10);
      drawDay();
    },
    focus: () => select.focus(),
  };
}
