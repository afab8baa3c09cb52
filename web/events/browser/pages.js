/** The view of each address: the list, a new webhook, one of the user, or its settings. */
import { element, problem } from '../../shared/elements.js';
import { identify } from '../../shared/navigation.js';
import { showViews } from '../../shared/views.js';
import { showChange, showNew } from './form.js';
import { showList } from './list.js';
import { showSubscription } from './subscription.js';

export const begin = showViews({
  open: async (_main, go) => {
    const place = await identify();
    const [, , id] = location.pathname.split('/');
    const view = new URLSearchParams(location.search).get('view');
    if (id) return view === 'settings' ? showChange(id, go) : showSubscription(id, place, go);
    return view === 'new' ? showNew() : showList(place);
  },
  problem: 'The webhooks cannot be shown',
  missing: () => [
    problem('There is no such webhook', 'It was deleted, or belongs to another user.'),
    element('p', {}, element('a', { href: '/events' }, 'All webhooks')),
  ],
});
