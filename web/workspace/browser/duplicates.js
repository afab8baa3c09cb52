/** Similar records that were found when one was to be saved, beside what was entered. */
import { button, element, foreign } from '../../shared/elements.js';
import { addressOf } from './objects.js';
import { say } from './words.js';

/** @import { CallFailed } from '../../shared/api.js' */
/** @import { DuplicateRule, ObjectType, Values } from './types.d.ts' */

/**
 * @param {CallFailed} error
 * @param {Values} entered
 * @param {ObjectType} type
 * @param {{ confirm: (token: string) => void, back: () => void }} then
 */
export function duplicatesBox({ details }, entered, type, { confirm, back }) {
  const rules = /** @type {DuplicateRule[]} */ (details['rules'] ?? []);
  const token = details['confirmationToken'];
  const hidden = rules.reduce((sum, { hiddenMatchCount }) => sum + hiddenMatchCount, 0);
  const seen = new Set();
  const matches = rules.flatMap(({ matches: found }) => found).filter(({ id }) => !seen.has(id) && seen.add(id));
  return element(
    'div',
    { class: 'card confirm duplicates', role: 'group', 'aria-label': say('duplicates') },
    element('h2', {}, say('duplicates')),
    element('p', {}, say(token ? 'duplicatesHint' : 'duplicatesBlocked')),
    ...matches.map(({ objectApiName, id, displayName, matchedFields, record }) =>
      element(
        'div',
        { class: 'match' },
        element('h3', {}, element('a', { href: addressOf(objectApiName, id), target: '_blank' }, foreign(displayName))),
        element(
          'table',
          { class: 'records', role: 'table', 'aria-label': displayName },
          element(
            'thead',
            { role: 'rowgroup' },
            element(
              'tr',
              { role: 'row' },
              ...[say('field'), say('existing'), say('yours')].map((label) =>
                element('th', { scope: 'col', role: 'columnheader' }, label),
              ),
            ),
          ),
          element(
            'tbody',
            { role: 'rowgroup' },
            ...Object.entries(record)
              .filter(([name]) => name in entered || matchedFields.includes(name))
              .map(([name, value]) =>
                element(
                  'tr',
                  { role: 'row', class: matchedFields.includes(name) ? 'matched' : '' },
                  element('th', { scope: 'row', role: 'rowheader' }, foreign(type.byName.get(name)?.label ?? name)),
                  element('td', { role: 'cell', 'data-label': say('existing') }, foreign(String(value ?? '–'))),
                  element('td', { role: 'cell', 'data-label': say('yours') }, foreign(String(entered[name] ?? '–'))),
                ),
              ),
          ),
        ),
      ),
    ),
    ...(hidden > 0 ? [element('p', { class: 'hint' }, say('hiddenMatches')(hidden))] : []),
    element(
      'div',
      { class: 'actions' },
      ...(token ? [button(say('saveAnyway'), () => confirm(String(token)), { class: 'small' })] : []),
      button(say('backToForm'), back, { class: 'quiet small' }),
    ),
  );
}
