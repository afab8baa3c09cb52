/**
 * The page on which people read their notifications and choose which of them arrive where: one document without data, with
 * scripts that ask the public API in the name of the person. Source: docs/reference/pages.md.
 */
import { NOTIFICATIONS } from '../../contracts/auth.ts';
import { appPage } from '../app-page.ts';

export const NOTIFICATIONS_PAGE = appPage({
  label: 'notifications',
  client: NOTIFICATIONS,
  styles: ['lists.css'],
  withoutScripts: 'This page reads your notifications with a script. Switch on JavaScript to see them.',
});
