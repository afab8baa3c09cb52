/** A record in a form: a new one, or one that is changed. */
import { answer, CallFailed } from '../../shared/api.js';
import { announce, button, element, fill, foreign, problem } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { describe, showViolations } from '../../shared/fields.js';
import { conflictBox } from './conflict.js';
import { draft, dropDraft, keepDraft } from './drafts.js';
import { duplicatesBox } from './duplicates.js';
import { inputOf, isEntered, same, Unreadable } from './inputs.js';
import { addressOf, EXACT, fieldsOf, layoutOf, read, typeOf } from './objects.js';
import { nameOf } from './values.js';
import { say } from './words.js';

/** @import { Field as FormField } from '../../shared/fields.js' */
/** @import { Person, View } from '../../shared/types.d.ts' */
/** @import { Field, Input, ObjectType, RecordData, Section, Values } from './types.d.ts' */

const WAIT_FIRST_MS = 1_000;
const WAIT_MAX_MS = 10_000;
const WIDE = new Set(['longText', 'richText', 'json', 'address', 'multiPicklist', 'geolocation']);

/**
 * @typedef {FormField & { field: Field, input: Input }} EntryField
 */

/**
 * @param {string} apiName
 * @param {string | null} id null: a new record
 * @param {Person} person
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showForm(apiName, id, person, go) {
  const type = await typeOf(apiName);
  const found = id === null ? null : await read(type, id);
  let { record: base, etag } = found ?? { record: defaultsOf(type, person), etag: '' };
  const sections = sectionsOf(type, base, id === null);
  const fields = sections.flatMap(({ fields: some }) => some).map((field) => entryField(field, person, base));
  const byName = new Map(fields.map((one) => [one.name, one]));
  const name = id === null ? '' : nameOf(base);
  const heading = id === null ? say('newRecord')(type.label) : say('editOf')(name);
  const { creatable, updateable } = type.capabilities;
  if (fields.length === 0 || !(id === null ? creatable : updateable))
    return {
      title: heading,
      parts: [
        problem(say('notAllowed'), say('notAllowedHint')),
        element('p', {}, element('a', { href: addressOf(apiName) }, foreign(type.labelPlural))),
      ],
    };
  const said = element('div', { class: 'said' });
  const save = element('button', { class: 'small' }, say(id === null ? 'create' : 'save'));
  const back = id === null ? addressOf(apiName) : addressOf(apiName, id);
  let closed = false;

  /** Collects the fields that differ from what the form began with. */
  const changes = () => {
    /** @type {Values} */
    const changed = {};
    for (const { name: one, field, value } of fields) {
      const entered = value();
      if (!same(entered, base[one], field)) changed[one] = entered;
    }
    return changed;
  };

  const remember = () => {
    try {
      keepDraft(changes());
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
    }
  };

  /** Values of dependent picklists follow the field that controls them. @param {string} changed */
  const control = (changed) => {
    for (const { field, input } of fields)
      if (field.controllingField === changed) {
        input.control?.(byName.get(changed)?.value());
        control(field.apiName);
      }
  };

  /** The key is kept over repeated attempts of the same request. */
  let sent = { text: '', key: '' };
  /**
   * Repeats by itself while the platform is away, with the same key: what was stored already is not stored twice.
   * @param {Values} body
   * @param {string} [confirmation]
   * @returns {Promise<Response | null>} null: given up
   */
  const store = async (body, confirmation) => {
    const text = JSON.stringify([body, etag, confirmation]);
    if (text !== sent.text) sent = { text, key: crypto.randomUUID() };
    let wait = WAIT_FIRST_MS;
    for (let stopped = false; !stopped && !closed; wait = Math.min(2 * wait, WAIT_MAX_MS))
      try {
        return await answer(id === null ? `/data/${apiName}` : `/data/${apiName}/${id}`, {
          ...{ method: id === null ? 'POST' : 'PATCH', body, key: sent.key, accept: EXACT },
          ...(id === null ? {} : { etag }),
          ...(confirmation ? { confirmation } : {}),
        });
      } catch (error) {
        if (!(error instanceof CallFailed && error.passes)) throw error;
        await new Promise((resolve) => {
          const stop = () => {
            stopped = true;
            resolve(null);
          };
          if (!said.querySelector('.away')) showBox(said, awayBox(stop));
          setTimeout(resolve, wait);
        });
      }
    fill(said);
    return null;
  };

  /**
   * @param {Values} body
   * @param {string} [confirmation]
   */
  const send = async (body, confirmation) => {
    save.toggleAttribute('disabled', true);
    try {
      const response = await store(body, confirmation);
      if (!response) return;
      const { id: stored } = await response.json();
      dropDraft();
      announce(say(id === null ? 'created' : 'saved'));
      // Going back leads to what was there before the form.
      const address = addressOf(apiName, stored);
      history.replaceState(null, '', address);
      go(address);
    } catch (error) {
      await refused(error, body);
    } finally {
      save.toggleAttribute('disabled', false);
    }
  };

  /**
   * @param {unknown} error
   * @param {Values} body
   */
  const refused = async (error, body) => {
    fill(said);
    if (!(error instanceof CallFailed)) return showBox(said, failureBox(say('saveFailed'), error));
    if (error.code === 'DUPLICATE_RULE')
      return showBox(
        said,
        duplicatesBox(error, body, type, {
          confirm: (token) => void send(body, token),
          back: backToForm,
        }),
      );
    if (error.status === 412 && id !== null) return compare(id, body);
    const count = new Set(error.errors.map(({ pointer }) => pointer)).size;
    const violations = error.errors.map((one) => ({ ...one, message: violationWord(one) }));
    if (count > 0 && showViolations(fields, violations)) {
      announce(say('check')(count));
      return;
    }
    showBox(said, failureBox(say('saveFailed'), error));
  };

  /**
   * @param {string} changedId
   * @param {Values} mine
   */
  const compare = async (changedId, mine) => {
    try {
      const { record: theirs, etag: current } = await read(type, changedId);
      const box = await conflictBox(type, { base, theirs, mine }, person, {
        save: (kept) => {
          base = theirs;
          etag = current;
          if (Object.keys(kept).length > 0) return void send(kept);
          dropDraft();
          go(back);
        },
        back: () => {
          // What they have changed comes into the form where it was not touched.
          for (const { name: one, input } of fields) if (!(one in mine)) input.set(theirs[one]);
          base = theirs;
          etag = current;
          backToForm();
        },
      });
      showBox(said, box);
    } catch (error) {
      showBox(said, failureBox(say('saveFailed'), error));
    }
  };

  const backToForm = () => {
    fill(said);
    fields[0]?.focus();
  };

  const form = element(
    'form',
    {
      novalidate: true,
      class: 'record-form',
      submit: (event) => {
        event.preventDefault();
        if (save.hasAttribute('disabled')) return;
        fill(said);
        showViolations(fields, []);
        try {
          const body = changes();
          if (id !== null && Object.keys(body).length === 0)
            return showBox(said, element('p', { class: 'done' }, say('nothingChanged')));
          void send(body);
        } catch (error) {
          if (!(error instanceof Unreadable)) throw error;
          showUnreadable(fields);
        }
      },
      input: remember,
      change: (event) => {
        const changed = fields.find(({ part }) => part.contains(/** @type {Node} */ (event.target)));
        if (changed) control(changed.name);
        remember();
      },
    },
    ...sections.map(({ label, fields: some }) =>
      element(
        'section',
        { class: 'card block' },
        element('h2', {}, foreign(label)),
        element(
          'div',
          { class: 'entries' },
          ...some.map(({ apiName: one }) => /** @type {Element} */ (byName.get(one)?.part)),
        ),
      ),
    ),
    said,
    element(
      'div',
      { class: 'actions save' },
      save,
      element('a', { href: back, click: () => void dropDraft() }, say('cancel')),
    ),
  );

  for (const { field } of fields) if (field.controllingField === null) control(field.apiName);
  const kept = draft() ?? (id === null ? given(type) : null);
  const notice = element('div', {});
  if (kept) {
    for (const [one, value] of Object.entries(kept)) byName.get(one)?.input.set(value);
    for (const one of Object.keys(kept)) control(one);
    // A dependent value is chosen after the field that controls it.
    for (const [one, value] of Object.entries(kept)) byName.get(one)?.input.set(value);
    if (draft())
      fill(
        notice,
        element(
          'p',
          { class: 'done', role: 'status' },
          say('draft'),
          ' ',
          button(
            say('discard'),
            () => {
              dropDraft();
              go(location.pathname + location.search);
            },
            { class: 'quiet small' },
          ),
        ),
      );
  }
  return {
    title: heading,
    parts: [
      element(
        'nav',
        { class: 'trail', 'aria-label': say('home') },
        element('a', { href: addressOf(apiName) }, foreign(type.labelPlural)),
        ...(id === null ? [] : [element('a', { href: back }, foreign(name))]),
      ),
      element('h1', { tabindex: '-1' }, foreign(heading)),
      notice,
      form,
    ],
    close: () => {
      closed = true;
    },
  };
}

/** @param {() => void} stop */
const awayBox = (stop) =>
  element(
    'div',
    { class: 'problem away', role: 'alert' },
    element('p', {}, say('away')),
    button(say('stopTrying'), stop, { class: 'quiet small' }),
  );

/** @param {readonly EntryField[]} fields */
function showUnreadable(fields) {
  let first = true;
  for (const { value, refuse, focus } of fields)
    try {
      value();
    } catch (error) {
      refuse([/** @type {Error} */ (error).message]);
      if (first) focus();
      first = false;
    }
}

/** @param {{ message: string, code?: string }} violation */
const violationWord = ({ message, code = '' }) => say('violations')[code] ?? message;

/**
 * What a new record begins with.
 * @param {ObjectType} type
 * @param {Person} person
 * @returns {RecordData}
 */
function defaultsOf({ fields, recordTypes }, { userId }) {
  /** @type {RecordData} */
  const record = { id: '' };
  for (const { apiName, defaultValue, picklistValues, fieldType } of fields) {
    const chosen =
      fieldType === 'picklist' ? picklistValues?.find(({ isDefault, active }) => isDefault && active) : null;
    record[apiName] = defaultValue ?? chosen?.value ?? null;
  }
  record['ownerId'] = userId;
  record['recordTypeApiName'] = recordTypes.find((one) => one.default)?.apiName ?? null;
  return record;
}

/**
 * Values that the address gives a new record, such as the one that a related list belongs to.
 * @param {ObjectType} type
 * @returns {Values}
 */
function given({ byName }) {
  return Object.fromEntries([...new URLSearchParams(location.search)].filter(([name]) => byName.get(name)?.creatable));
}

/**
 * The sections of the layout with the fields that can be written; fields that it does not have and that are required, or that the address gives, come after them.
 * @param {ObjectType} type
 * @param {RecordData} record
 * @param {boolean} isNew
 * @returns {{ label: string, fields: Field[] }[]}
 */
function sectionsOf(type, record, isNew) {
  const layout = layoutOf(type, record['recordTypeApiName']);
  /** @param {Field} field */
  const open = (field) => isEntered(field) && (isNew ? field.creatable && !field.stateField : field.updateable);
  const sections = layout.sections.map(({ label, columns }) => {
    const all = alternating(type, columns).filter(open);
    // What takes a whole line comes last, so that no line is left half empty.
    const isWide = (/** @type {Field} */ { fieldType }) => WIDE.has(fieldType);
    return { label, fields: [...all.filter((field) => !isWide(field)), ...all.filter(isWide)] };
  });
  const placed = new Set(sections.flatMap(({ fields }) => fields));
  const wanted = isNew ? given(type) : {};
  const missing = type.fields.filter(
    (field) =>
      open(field) &&
      !placed.has(field) &&
      ((isNew && field.required) || field.apiName in wanted || isRecordType(type, field)),
  );
  return [...sections, { label: say('more'), fields: missing }].filter(({ fields }) => fields.length > 0);
}

/**
 * @param {ObjectType} type
 * @param {Field} field
 */
const isRecordType = ({ recordTypes }, { apiName }) => apiName === 'recordTypeApiName' && recordTypes.length > 0;

/**
 * Fields of columns row by row, as they are read.
 * @param {ObjectType} type
 * @param {Section['columns']} columns
 */
function alternating(type, columns) {
  const rows = Math.max(0, ...columns.map(({ length }) => length));
  return fieldsOf(type, Array.from({ length: rows }, (_, at) => columns.flatMap((column) => column[at] ?? [])).flat());
}

/**
 * @param {Field} field
 * @param {Person} person
 * @param {RecordData} record
 * @returns {EntryField}
 */
function entryField(field, person, record) {
  const { apiName: name, label, required, helpText, fieldType } = field;
  const id = `field-${name}`;
  const input = inputOf(field, person, id);
  const control = input.part.id === id ? input.part : /** @type {HTMLElement} */ (input.part.querySelector('input'));
  const { below, refuse } = describe(id, control, helpText ?? undefined);
  const words = element(
    'label',
    { for: id, id: `${id}-label` },
    foreign(label),
    ...(required ? [element('span', { class: 'required', title: say('required') }, ' *')] : []),
  );
  if (control.getAttribute('role') === 'group') {
    control.setAttribute('aria-labelledby', `${id}-label`);
    words.removeAttribute('for');
  } else if (required) control.setAttribute('aria-required', 'true');
  input.set(record[name] ?? null);
  return {
    ...{ name, field, input },
    part: element('div', { class: `field${WIDE.has(fieldType) ? ' wide' : ''}` }, words, input.part, ...below),
    value: input.value,
    refuse: (messages) => {
      if (messages.length > 0) control.setAttribute('aria-invalid', 'true');
      else control.removeAttribute('aria-invalid');
      refuse(messages);
    },
    focus: input.focus,
  };
}
