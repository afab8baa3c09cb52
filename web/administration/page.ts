/**
 * The page on which administrators see why a user may or may not open a record: one document without data, with scripts that ask
 * the public API in the name of the person. Source: docs/reference/pages.md.
 */
import { ADMINISTRATION } from '../../contracts/auth.ts';
import { appPage } from '../app-page.ts';

export const ADMINISTRATION_PAGE = appPage({
  label: 'administration',
  client: ADMINISTRATION,
  styles: ['lists.css'],
  below: 'why',
  withoutScripts: 'This page asks the platform with a script. Switch on JavaScript to use it.',
});
