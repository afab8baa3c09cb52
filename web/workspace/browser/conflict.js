/** Two people have changed a record: what both had before, theirs and yours, field by field. */
import { button, element, foreign } from '../../shared/elements.js';
import { same } from './inputs.js';
import { isReference, namesOf } from './objects.js';
import { written } from './values.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { Field, ObjectType, RecordData, Values } from './types.d.ts' */

/**
 * @param {ObjectType} type
 * @param {{ base: RecordData, theirs: RecordData, mine: Values }} versions mine: the changed fields alone
 * @param {Person} person
 * @param {{ save: (values: Values) => void, back: () => void }} then values: what is to be written over theirs
 */
export async function conflictBox(type, { base, theirs, mine }, person, { save, back }) {
  const fields = Object.keys(mine).flatMap((name) => type.byName.get(name) ?? []);
  const both = fields.filter(
    (field) =>
      !same(base[field.apiName], theirs[field.apiName], field) &&
      !same(mine[field.apiName], theirs[field.apiName], field),
  );
  const onlyTheirs = type.fields.filter(
    (field) =>
      !field.system &&
      !(field.apiName in mine) &&
      isEditedByPeople(field) &&
      !same(base[field.apiName], theirs[field.apiName], field),
  );
  const onlyMine = fields.filter(
    (field) => !both.includes(field) && !same(mine[field.apiName], theirs[field.apiName], field),
  );
  const names = await namesFor([...both, ...onlyTheirs, ...onlyMine], [base, theirs, mine]);
  /**
   * @param {Field} field
   * @param {Values} version
   */
  const words = (field, version) => {
    const value = version[field.apiName] ?? null;
    if (value === null) return say('empty');
    if (isReference(field)) return names.get(String(value)) ?? String(value);
    return written(value, field, person, { ...theirs, ...version }) || say('empty');
  };
  /**
   * @param {Field} field
   * @param {'theirs' | 'mine'} side
   * @param {Values} version
   * @param {'theirs' | 'mine' | null} kept null: there is a choice
   */
  const cell = (field, side, version, kept) => {
    const text = foreign(words(field, version));
    const td = element('td', {
      role: 'cell',
      'data-label': say(side === 'mine' ? 'yours' : 'theirs'),
    });
    if (kept !== null) td.append(kept === side ? element('strong', {}, text) : text);
    else
      td.append(
        element(
          'label',
          { class: 'choice' },
          element('input', {
            type: 'radio',
            name: `keep-${field.apiName}`,
            value: side,
            checked: side === 'mine',
            'aria-label': `${field.label}: ${say(side === 'mine' ? 'useYours' : 'useTheirs')}, ${text.textContent}`,
          }),
          text,
        ),
      );
    return td;
  };
  const rows = [
    ...both.map((field) => ({ field, kept: null, mine })),
    ...onlyMine.map((field) => ({ field, kept: /** @type {const} */ ('mine'), mine })),
    ...onlyTheirs.map((field) => ({ field, kept: /** @type {const} */ ('theirs'), mine: base })),
  ].map(({ field, kept, mine: own }) =>
    element(
      'tr',
      { role: 'row' },
      element('th', { scope: 'row', role: 'rowheader' }, foreign(field.label)),
      element('td', { role: 'cell', 'data-label': say('before') }, foreign(words(field, base))),
      cell(field, 'theirs', theirs, kept),
      cell(field, 'mine', own, kept),
    ),
  );
  const box = element(
    'form',
    {
      class: 'card confirm conflict',
      'aria-label': say('conflict'),
      submit: (event) => {
        event.preventDefault();
        const kept = both.filter(({ apiName }) => {
          const chosen = /** @type {HTMLInputElement | null} */ (box.querySelector(`[name="keep-${apiName}"]:checked`));
          return chosen?.value === 'mine';
        });
        save(Object.fromEntries([...onlyMine, ...kept].map(({ apiName }) => [apiName, mine[apiName]])));
      },
    },
    element('h2', {}, say('conflict')),
    element('p', {}, say(both.length > 0 ? 'conflictHint' : 'noConflict')),
    element(
      'table',
      { class: 'records', role: 'table', 'aria-label': say('conflict') },
      element(
        'thead',
        { role: 'rowgroup' },
        element(
          'tr',
          { role: 'row' },
          ...[say('field'), say('before'), say('theirs'), say('yours')].map((label) =>
            element('th', { scope: 'col', role: 'columnheader' }, label),
          ),
        ),
      ),
      element('tbody', { role: 'rowgroup' }, ...rows),
    ),
    element(
      'div',
      { class: 'actions' },
      element('button', { class: 'small' }, say('saveChoice')),
      button(say('backToForm'), back, { class: 'quiet small' }),
    ),
  );
  return box;
}

/** Computed fields follow by themselves. @param {Field} field */
const isEditedByPeople = ({ fieldType }) => fieldType !== 'formula' && fieldType !== 'rollup';

/**
 * @param {readonly Field[]} fields
 * @param {readonly Values[]} versions
 */
async function namesFor(fields, versions) {
  const found = await Promise.all(
    fields.filter(isReference).map(({ apiName, referenceTo }) =>
      namesOf(
        referenceTo[0] ?? '',
        versions.flatMap((version) => (typeof version[apiName] === 'string' ? [String(version[apiName])] : [])),
      ).catch(() => new Map()),
    ),
  );
  return new Map(found.flatMap((names) => [...names]));
}
