/** A record as its layout has it, with what can be done with it. */
import { CallFailed, call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { historyPart } from './history.js';
import { addressOf, fieldsOf, layoutOf, read, typeOf } from './objects.js';
import { relatedPart } from './related.js';
import { transitionsPart } from './transitions.js';
import { isMoney, nameOf, shown } from './values.js';
import { say } from './words.js';

/** @import { Person, View } from '../../shared/types.d.ts' */
/** @import { Field, ObjectType, RecordData } from './types.d.ts' */

const KEPT_FIELDS = ['ownerId', 'createdAt', 'createdById', 'updatedAt', 'updatedById'];
const WIDE = new Set(['longText', 'richText', 'json']);

/**
 * @param {string} apiName
 * @param {string} id
 * @param {Person} person
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showRecord(apiName, id, person, go) {
  const type = await typeOf(apiName);
  const { record, etag } = await read(type, id);
  const layout = layoutOf(type, record['recordTypeApiName']);
  const name = nameOf(record);
  const said = element('div', { class: 'said' });
  const again = () => go(addressOf(apiName, id));
  const { updateable, deletable } = type.capabilities;
  const placed = new Set(layout.sections.flatMap(({ columns }) => columns.flat()));
  const kept = fieldsOf(
    type,
    KEPT_FIELDS.filter((field) => !placed.has(field)),
  );
  const transitions = transitionsPart(type, record, etag, again, said);
  const related = layout.relatedLists.map((list) => relatedPart(list, record, name, person));
  const history = historyPart(type, record, person);
  const parts = [
    element(
      'nav',
      { class: 'trail', 'aria-label': say('home') },
      element('a', { href: addressOf(apiName) }, foreign(type.labelPlural)),
    ),
    element(
      'div',
      { class: 'title' },
      element('h1', { tabindex: '-1' }, foreign(name)),
      ...type.fields.filter(({ stateField }) => stateField).map((field) => shown(record, field, person)),
      element(
        'div',
        { class: 'actions' },
        ...(updateable
          ? [element('a', { class: 'button', href: addressOf(apiName, id, { view: 'edit' }) }, say('edit'))]
          : []),
        ...(deletable
          ? [
              button(say('delete'), () => askToDelete(type, record, etag, { said, go, again }), {
                class: 'quiet small danger',
              }),
            ]
          : []),
      ),
    ),
    said,
    transitions.part,
    ...layout.sections.map(({ label, columns }) => section(label, columns, type, record, person)),
    ...related.map(({ part }) => part),
    history.part,
    ...(kept.length > 0 ? [section(say('system'), halves(kept), type, record, person)] : []),
  ];
  return {
    title: `${name} · ${type.label}`,
    parts,
    ran: Promise.all([transitions.ran, history.ran, ...related.map(({ ran }) => ran)]),
  };
}

/** @param {readonly Field[]} fields */
const halves = (fields) => {
  const names = fields.map(({ apiName }) => apiName);
  return [names.filter((_, at) => at % 2 === 0), names.filter((_, at) => at % 2 === 1)];
};

/**
 * @param {string} label
 * @param {readonly string[][]} columns
 * @param {ObjectType} type
 * @param {RecordData} record
 * @param {Person} person
 */
function section(label, columns, type, record, person) {
  return element(
    'section',
    { class: 'card block' },
    element('h2', {}, foreign(label)),
    element(
      'div',
      { class: 'columns' },
      ...columns.map((names) =>
        element(
          'dl',
          {},
          ...fieldsOf(type, names).map((field) =>
            element(
              'div',
              { class: WIDE.has(field.fieldType) ? 'wide' : isMoney(field) ? 'number' : '' },
              element('dt', {}, foreign(field.label)),
              element('dd', {}, shown(record, field, person)),
            ),
          ),
        ),
      ),
    ),
  );
}

/**
 * @param {ObjectType} type
 * @param {RecordData} record
 * @param {string} etag
 * @param {{ said: Element, go: (address: string) => void, again: () => void }} page
 */
function askToDelete(type, record, etag, { said, go, again }) {
  const path = `/data/${type.apiName}/${record.id}`;
  const name = nameOf(record);
  const key = crypto.randomUUID();
  const act = async () => {
    try {
      const { cascaded = {} } = (await call(path, { method: 'DELETE', etag, key })) ?? {};
      const others = Object.values(cascaded).reduce((sum, count) => sum + Number(count), 0);
      const main = /** @type {Element} */ (said.parentElement);
      const heading = element('h1', { tabindex: '-1' }, foreign(say('deleted')(name)));
      const failed = element('div', { class: 'said' });
      fill(
        main,
        heading,
        ...(others > 0 ? [element('p', {}, say('deletedWith')(others))] : []),
        element(
          'p',
          { class: 'actions' },
          button(say('restore'), () => void restoreById(type.apiName, record.id, failed, go), { class: 'quiet small' }),
          element('a', { href: addressOf(type.apiName) }, foreign(type.labelPlural)),
        ),
        failed,
      );
      heading.focus();
    } catch (error) {
      const changed = error instanceof CallFailed && error.status === 412;
      showBox(
        said,
        failureBox(
          say('stepFailed'),
          error,
          ...(changed ? [button(say('reload'), again, { class: 'quiet small' })] : []),
        ),
      );
    }
  };
  const box = element(
    'div',
    { class: 'card confirm', role: 'group', 'aria-label': say('deleteQuestion')(name) },
    element('h2', {}, foreign(say('deleteQuestion')(name))),
    element('p', {}, say('deleteHint')),
    element(
      'div',
      { class: 'actions' },
      button(say('delete'), () => void act(), { class: 'small danger' }),
      button(say('back'), () => fill(said), { class: 'quiet small' }),
    ),
  );
  showBox(said, box);
}

/**
 * @param {string} apiName
 * @param {string} id
 * @param {Element} said
 * @param {(address: string) => void} go
 */
export async function restoreById(apiName, id, said, go) {
  try {
    await call(`/data/${apiName}/${id}/restore`, { method: 'POST', key: crypto.randomUUID() });
    announce(say('restored'));
    go(addressOf(apiName, id));
  } catch (error) {
    showBox(said, failureBox(say('stepFailed'), error));
  }
}
