/** The view of each address: the notifications or the preferences. */
import { identify } from '../../shared/navigation.js';
import { showViews } from '../../shared/views.js';
import { showList } from './list.js';
import { showPreferences } from './preferences.js';

export const begin = showViews({
  open: async (_main, go) => {
    const place = await identify();
    const view = new URLSearchParams(location.search).get('view');
    const [title, parts] = await (view === 'preferences' ? showPreferences(place) : showList(view, place, go));
    return { title, parts };
  },
  problem: 'The notifications cannot be shown',
});
