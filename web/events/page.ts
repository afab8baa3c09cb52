/**
 * The page on which people have events sent to other systems and see what became of each delivery: one document without data, with
 * scripts that ask the public API in the name of the person. Source: docs/reference/pages.md.
 */
import { WEBHOOKS } from '../../contracts/auth.ts';
import { appPage } from '../app-page.ts';

export const EVENTS_PAGE = appPage({
  label: 'events',
  client: WEBHOOKS,
  styles: ['lists.css'],
  withoutScripts: 'This page reads your webhooks with a script. Switch on JavaScript to see them.',
});
