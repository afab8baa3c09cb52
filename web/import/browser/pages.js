/** The view of each address: a new import, or one of the user. */
import { element, problem } from '../../shared/elements.js';
import { identify } from '../../shared/navigation.js';
import { showViews } from '../../shared/views.js';
import { showForm } from './form.js';
import { showJob } from './job.js';

export const begin = showViews({
  open: async (main, go) => {
    const place = await identify();
    const [, , jobId] = location.pathname.split('/');
    return jobId ? showJob(main, jobId, place) : showForm(main, place, go);
  },
  problem: 'The imports cannot be shown',
  missing: () => [
    problem('There is no such import', 'It belongs to another user, or was removed after seven days.'),
    element('p', {}, element('a', { href: '/import' }, 'Import a spreadsheet')),
  ],
});
