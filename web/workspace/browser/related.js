/** Records that refer to a record, as its layout lists them. */
import { element, fill, foreign } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { row } from './list.js';
import { addressOf, fieldsOf, query, typeOf } from './objects.js';
import { isNumber } from './values.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { RecordData, RelatedList } from './types.d.ts' */

const SHOWN = 5;

/**
 * @param {RelatedList} list
 * @param {RecordData} record
 * @param {string} name
 * @param {Person} person
 */
export function relatedPart({ label, objectApiName, field, columns }, record, name, person) {
  const links = element('div', { class: 'actions' });
  const place = element('div', {}, element('div', { class: 'skeleton', 'aria-hidden': 'true' }, element('div', {})));
  const part = element(
    'section',
    { class: 'card block' },
    element('div', { class: 'title' }, element('h2', {}, foreign(label)), links),
    place,
  );
  const load = async () => {
    try {
      const type = await typeOf(objectApiName);
      const fields = fieldsOf(type, columns.includes('name') ? columns : ['name', ...columns]);
      const { records, nextCursor } = await query(type, fields, { where: { [field]: record.id }, take: SHOWN });
      const conditions = [{ id: 'c1', field, operator: 'eq', value: record.id }];
      const filters = JSON.stringify({ logic: 'and', conditions });
      fill(
        links,
        ...(nextCursor === null
          ? []
          : [element('a', { href: addressOf(objectApiName, undefined, { filters }) }, say('showAll'))]),
        ...(type.capabilities.creatable && type.byName.get(field)?.creatable
          ? [
              element(
                'a',
                { href: addressOf(objectApiName, undefined, { view: 'new', [field]: record.id }) },
                say('newRecord')(type.label),
              ),
            ]
          : []),
      );
      if (records.length === 0) return fill(place, element('p', { class: 'hint' }, say('noRelated')));
      const heads = fields.map((one) =>
        element('th', { scope: 'col', role: 'columnheader', class: isNumber(one) ? 'number' : '' }, foreign(one.label)),
      );
      fill(
        place,
        element(
          'div',
          { class: 'sheet' },
          element(
            'table',
            { class: 'records', role: 'table', 'aria-label': `${label}: ${name}` },
            element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
            element('tbody', { role: 'rowgroup' }, ...records.map((one) => row(one, fields, person, type))),
          ),
        ),
      );
    } catch (error) {
      fill(place, failureBox(say('cannotShow'), error));
    }
  };
  return { part, ran: load() };
}
