/** What can be done with a record: its transitions and actions as buttons, and why others are not possible. */
import { CallFailed, call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { describe, showViolations } from '../../shared/fields.js';
import { duplicatesBox } from './duplicates.js';
import { say } from './words.js';

/** @import { Field as FormField } from '../../shared/fields.js' */
/** @import { InputSchema, ObjectType, RecordData, Transition, Values } from './types.d.ts' */

/**
 * @param {ObjectType} type
 * @param {RecordData} record
 * @param {string} etag
 * @param {() => void} again shows the record anew
 * @param {Element} said
 */
export function transitionsPart(type, record, etag, again, said) {
  const path = `/data/${type.apiName}/${record.id}/transitions`;
  const part = element('div', { class: 'steps' });
  const load = async () => {
    try {
      /** @type {{ records: Transition[] }} */
      const { records } = await call(path);
      if (records.length === 0) return;
      const possible = records.filter(({ available }) => available);
      const others = records.filter(({ available }) => !available);
      fill(
        part,
        element(
          'div',
          { class: 'actions', role: 'group', 'aria-label': say('nextSteps') },
          element('span', { class: 'hint' }, say('nextSteps')),
          ...possible.map((one) =>
            button(one.label, () => begin(one), {
              class: 'quiet small',
              ...(one.description ? { title: one.description } : {}),
            }),
          ),
          ...(possible.length === 0 ? [element('span', { class: 'hint' }, say('noSteps'))] : []),
        ),
        ...(others.length > 0 ? [impossible(others)] : []),
      );
    } catch (error) {
      fill(part, failureBox(say('cannotShow'), error));
    }
  };
  /** @param {Transition} transition */
  const begin = (transition) => {
    const { requiresComment, input, risk } = transition;
    if (requiresComment || input || risk === 'high') return askFirst(transition);
    void execute(transition, {}, []);
  };
  /** The key is kept over repeated attempts of the same request. */
  let sent = { text: '', key: '' };
  /**
   * @param {Transition} transition
   * @param {{ input?: Values, comment?: string }} body
   * @param {readonly FormField[]} fields
   * @param {string} [confirmation]
   */
  const execute = async ({ transitionKey, label }, body, fields, confirmation) => {
    const text = JSON.stringify([transitionKey, body, confirmation]);
    if (text !== sent.text) sent = { text, key: crypto.randomUUID() };
    try {
      await call(`${path}/${transitionKey}`, {
        ...{ method: 'POST', body, etag, key: sent.key },
        ...(confirmation ? { confirmation } : {}),
      });
      announce(say('stepDone')(label));
      again();
    } catch (error) {
      if (error instanceof CallFailed && error.code === 'DUPLICATE_RULE') {
        const box = duplicatesBox(error, {}, type, {
          confirm: (token) => void execute({ ...NONE, transitionKey, label }, body, fields, token),
          back: () => fill(said),
        });
        return showBox(said, box);
      }
      const violations =
        error instanceof CallFailed
          ? error.errors.map(({ pointer = '', ...one }) => ({ ...one, pointer: pointer.replace('/input/', '/') }))
          : [];
      if (violations.length > 0 && showViolations(fields, violations)) return announce(say('stepFailed'));
      const changed = error instanceof CallFailed && (error.status === 412 || error.status === 409);
      const reload = button(say('reload'), again, { class: 'quiet small' });
      const box = failureBox(say('stepFailed'), error, ...(changed ? [reload] : []));
      if (fields.length === 0) showBox(said, box);
      else showBox(/** @type {Element} */ (said.querySelector('.said')), box);
    }
  };
  /** @param {Transition} transition */
  const askFirst = (transition) => {
    const { label, description, input, requiresComment, risk } = transition;
    const fields = [
      ...inputFields(input),
      ...(requiresComment || risk === 'high' ? [commentField(requiresComment)] : []),
    ];
    const form = element(
      'form',
      {
        class: 'card confirm',
        'aria-label': label,
        novalidate: true,
        submit: (event) => {
          event.preventDefault();
          const values = fields.map(({ name, value }) => /** @type {const} */ ([name, value()]));
          const comment = values.find(([name]) => name === 'comment')?.[1];
          const given = Object.fromEntries(values.filter(([name, value]) => name !== 'comment' && value !== null));
          void execute(
            transition,
            { ...(input ? { input: given } : {}), ...(comment ? { comment: String(comment) } : {}) },
            fields,
          );
        },
      },
      element('h2', {}, foreign(label)),
      ...(description ? [element('p', {}, foreign(description))] : []),
      ...(risk === 'high' ? [element('p', { class: 'hint' }, say('confirmStep'))] : []),
      ...fields.map(({ part: one }) => one),
      element('div', { class: 'said' }),
      element(
        'div',
        { class: 'actions' },
        element('button', { class: 'small' }, foreign(label)),
        button(say('back'), () => fill(said), { class: 'quiet small' }),
      ),
    );
    showBox(said, form);
    fields[0]?.focus();
  };
  return { part, ran: load() };
}

/** @type {Transition} */
const NONE = {
  transitionKey: '',
  label: '',
  description: null,
  toState: null,
  kind: 'action',
  available: true,
  unavailableReasons: [],
  risk: 'low',
  requiresComment: false,
  input: null,
};

/** @param {readonly Transition[]} others */
function impossible(others) {
  return element(
    'details',
    {},
    element('summary', {}, say('notPossible')(others.length)),
    element(
      'ul',
      { class: 'impossible' },
      ...others.map(({ transitionKey, label, unavailableReasons }) =>
        element(
          'li',
          {},
          button(label, () => {}, { class: 'quiet small', disabled: true, 'aria-describedby': `why-${transitionKey}` }),
          element(
            'span',
            { id: `why-${transitionKey}`, class: 'hint' },
            [...new Set(unavailableReasons.map(reason))].join(' '),
          ),
        ),
      ),
    ),
  );
}

/** @param {{ code: string, message: string }} reason */
function reason({ code, message }) {
  if (code === 'STATE_CONFLICT') return say('stateConflict')(message);
  return code === 'GUARD_NOT_MET' ? message : say('notPermitted');
}

/**
 * @param {boolean} required
 * @returns {FormField}
 */
function commentField(required) {
  const control = /** @type {HTMLTextAreaElement} */ (
    element('textarea', { id: 'comment', rows: '3', maxlength: '2000' })
  );
  const label = required ? `${say('comment')} *` : say('comment');
  return field('comment', label, control, () => control.value.trim() || null);
}

/**
 * What a transition takes, as far as its schema has plain values.
 * @param {InputSchema | null} schema
 */
function inputFields(schema) {
  const required = new Set(schema?.required);
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { type = 'string', title, description, format } = property;
    const number = type === 'number' || type === 'integer';
    const options = type === 'boolean' ? ['true', 'false'] : property.enum;
    const control = /** @type {HTMLInputElement} */ (
      options
        ? element(
            'select',
            { id: name },
            element('option', { value: '' }, ''),
            ...options.map((one) =>
              element('option', { value: one }, type === 'boolean' ? say(one === 'true' ? 'yes' : 'no') : one),
            ),
          )
        : element('input', { id: name, autocomplete: 'off', type: format === 'date' ? 'date' : 'text' })
    );
    const value = () => {
      const text = control.value.trim();
      if (text === '') return null;
      if (type === 'boolean') return text === 'true';
      return number && !Number.isNaN(Number(text)) ? Number(text) : text;
    };
    return field(name, `${title ?? name}${required.has(name) ? ' *' : ''}`, control, value, description);
  });
}

/**
 * @param {string} name
 * @param {string} label
 * @param {HTMLElement} control
 * @param {() => unknown} value
 * @param {string} [hint]
 * @returns {FormField}
 */
function field(name, label, control, value, hint) {
  const { below, refuse } = describe(name, control, hint);
  return {
    name,
    part: element('div', { class: 'field' }, element('label', { for: name }, foreign(label)), control, ...below),
    value,
    refuse,
    focus: () => control.focus(),
  };
}
