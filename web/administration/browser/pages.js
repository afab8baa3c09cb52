/** The view of each address: the areas of administration, or the access of a user to a record. */
import { element, problem } from '../../shared/elements.js';
import { identify } from '../../shared/navigation.js';
import { showViews } from '../../shared/views.js';
import { showWhy } from './why.js';
import { say } from './words.js';

/** @import { View } from '../../shared/types.d.ts' */

export const begin = showViews({
  open: async (_main, go) => {
    await identify();
    return location.pathname.endsWith('/why') ? showWhy(go) : areas();
  },
  problem: 'Administration',
  missing: () => [
    problem(say('missing'), say('missingHint')),
    element('p', {}, element('a', { href: '/admin/why' }, say('again'))),
  ],
});

/** @returns {View} */
function areas() {
  const area = (/** @type {string} */ href, /** @type {string} */ title, /** @type {string} */ about) =>
    element(
      'li',
      { class: 'card' },
      element('h2', {}, element('a', { href }, title)),
      element('p', { class: 'hint' }, about),
    );
  return {
    title: say('title'),
    parts: [
      element('h1', { tabindex: '-1' }, say('title')),
      element(
        'ul',
        { class: 'areas' },
        area('/admin/why', say('why'), say('whyAbout')),
        area('/approvals', say('approvals'), say('approvalsAbout')),
        area('/import', say('imports'), say('importsAbout')),
        area('/events', 'Webhooks', say('webhooksAbout')),
      ),
    ],
  };
}
