/** The view of each address: the list, or a dashboard. */
import { CallFailed } from '../../shared/api.js';
import { element, problem } from '../../shared/elements.js';
import { identify } from '../../shared/navigation.js';
import { showViews } from '../../shared/views.js';
import { showDashboard } from './dashboard.js';
import { showList } from './list.js';
import { say } from './words.js';

/** @import { Place } from '../../shared/types.d.ts' */

/** @type {Promise<Place> | null} */
let asking = null;

/** The user's language and time zone; the browser's language and UTC where the platform does not answer. */
function place() {
  asking ??= identify().catch((error) => {
    // The next view asks again.
    asking = null;
    if (!(error instanceof CallFailed)) throw error;
    return { locale: navigator.language, timezone: 'UTC' };
  });
  return asking;
}

const beginViews = showViews({
  open: (main, go) => {
    const [, , dashboardId] = location.pathname.split('/');
    return dashboardId ? showDashboard(main, dashboardId, place, go) : showList(main, place, go);
  },
  get problem() {
    return say('cannotShow');
  },
  missing: () => [
    problem(say('missing'), say('missingHint')),
    element('p', {}, element('a', { href: '/dashboards' }, say('allDashboards'))),
  ],
});

/** @param {unknown} refused why there is no sign-in; null: there is one */
export async function begin(refused) {
  // The chart library has run by then.
  if (document.readyState !== 'complete') await new Promise((done) => addEventListener('load', done, { once: true }));
  await beginViews(refused);
}
