/**
 * The page on which people work with the records of their company: one document without data, with scripts that ask the
 * public API in the name of the person. Source: docs/reference/pages.md.
 */
import { WORKSPACE } from '../../contracts/auth.ts';
import { appPage, UUID } from '../app-page.ts';

export const WORKSPACE_PAGE = appPage({
  label: 'workspace',
  client: WORKSPACE,
  styles: ['lists.css'],
  below: `[a-z]\\w{0,79}(?:/${UUID})?`,
  withoutScripts: 'This page reads your records with a script. Switch on JavaScript to see them.',
});
