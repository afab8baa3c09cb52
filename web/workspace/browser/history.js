/** What happened to a record, with names of people and of records. */
import { call } from '../../shared/api.js';
import { button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';
import { isReference, namesOf } from './objects.js';
import { written } from './values.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { HistoryEntry, ObjectType, RecordData, Values } from './types.d.ts' */

const PAGE_SIZE = 10;

/**
 * @param {ObjectType} type
 * @param {RecordData} record
 * @param {Person} person
 */
export function historyPart(type, record, person) {
  const list = element('ol', { class: 'history' });
  const place = element('div', {}, element('div', { class: 'skeleton', 'aria-hidden': 'true' }, element('div', {})));
  /** @type {string | null} */
  let cursor = null;
  const more = button(say('showMore'), () => void load(), { class: 'quiet small', hidden: true });
  const load = async () => {
    try {
      const asked = new URLSearchParams({ take: String(PAGE_SIZE), ...(cursor ? { cursor } : {}) });
      /** @type {{ records: HistoryEntry[], nextCursor: string | null }} */
      const { records, nextCursor } = await call(`/data/${type.apiName}/${record.id}/history?${asked}`);
      const names = await namesIn(type, records);
      if (records.length === 0 && cursor === null)
        return fill(place, element('p', { class: 'hint' }, say('noHistory')));
      list.append(...records.map((one) => entry(one, type, record, names, person)));
      cursor = nextCursor;
      more.hidden = cursor === null;
      fill(place, list, more);
    } catch (error) {
      fill(place, failureBox(say('cannotShow'), error));
    }
  };
  const part = element('section', { class: 'card block' }, element('h2', {}, say('history')), place);
  return { part, ran: load() };
}

/**
 * Names of the people and records in some entries, by id.
 * @param {ObjectType} type
 * @param {readonly HistoryEntry[]} entries
 */
async function namesIn(type, entries) {
  /** @type {Map<string, Set<string>>} */
  const wanted = new Map([['User', new Set(entries.flatMap(({ actor }) => actor.userId ?? []))]]);
  for (const { field, from, to } of entries.flatMap(({ changes }) => changes)) {
    const target = type.byName.get(field);
    if (!target || !isReference(target)) continue;
    const object = target.referenceTo[0] ?? '';
    const ids = wanted.get(object) ?? new Set();
    for (const value of [from, to]) if (typeof value === 'string') ids.add(value);
    wanted.set(object, ids);
  }
  const found = await Promise.all([...wanted].map(([object, ids]) => namesOf(object, ids).catch(() => new Map())));
  return new Map(found.flatMap((names) => [...names]));
}

/**
 * @param {HistoryEntry} entry
 * @param {ObjectType} type
 * @param {RecordData} record
 * @param {ReadonlyMap<string, string>} names
 * @param {Person} person
 */
function entry({ at, actor, operation, changes }, type, record, names, person) {
  const who = actor.userId === null ? say('system_') : (names.get(actor.userId) ?? say('notVisible'));
  const operations = /** @type {Record<string, string>} */ (say('operations'));
  const values = (/** @type {'from' | 'to'} */ side) =>
    /** @type {Values} */ (Object.fromEntries(changes.map((change) => [change.field, change[side]])));
  const before = values('from');
  const after = values('to');
  /**
   * @param {string} name
   * @param {Values} version
   */
  const words = (name, version) => {
    const field = type.byName.get(name);
    const value = version[name];
    if (value === null || value === undefined || !field) return say('empty');
    if (isReference(field)) return names.get(String(value)) ?? say('notVisible');
    // The currency is today's, unless it changed with the amount.
    return written(value, field, person, { ...record, ...version });
  };
  const drawn = changes
    .filter(({ field, to }) => type.byName.has(field) && (operation !== 'create' || to !== null))
    .map(({ field, from }) =>
      element(
        'li',
        {},
        element('span', { class: 'what' }, foreign(type.byName.get(field)?.label ?? field)),
        ...(operation === 'create' || from === undefined
          ? []
          : [
              element(
                'del',
                {},
                element('span', { class: 'visually-hidden' }, `${say('was')}: `),
                foreign(words(field, before)),
              ),
              element('span', { 'aria-hidden': 'true' }, ' → '),
            ]),
        element(
          'ins',
          {},
          element('span', { class: 'visually-hidden' }, `${say('is')}: `),
          foreign(words(field, after)),
        ),
      ),
    );
  const changed = element('ul', { class: 'changes' }, ...drawn);
  return element(
    'li',
    {},
    element(
      'p',
      {},
      element('strong', {}, foreign(say('by')(who, operations[operation] ?? operation))),
      ' ',
      element('time', { datetime: at, class: 'hint' }, moment(at, person)),
    ),
    ...(drawn.length === 0
      ? []
      : operation === 'create'
        ? [element('details', {}, element('summary', {}, say('details')), changed)]
        : [changed]),
  );
}
