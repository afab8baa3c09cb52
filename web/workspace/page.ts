/**
 * The page on which people work with the records of their company: one document without data, with scripts that ask the
 * public API in the name of the person. Source: docs/reference/pages.md.
 */
import { WORKSPACE } from '../../contracts/auth.ts';
import { appPage, UUID } from '../app-page.ts';

export const WORKSPACE_PAGE = appPage({
  label: 'workspace',
  client: WORKSPACE,
  shared: ['fields.js', 'save.js'],
  styles: ['lists.css'],
  modules: [
    'pages.js',
    'words.js',
    'objects.js',
    'values.js',
    'requests.js',
    'palette.js',
    'list.js',
    'selection.js',
    'spreadsheet.js',
    'filters.js',
    'record.js',
    'related.js',
    'transitions.js',
    'history.js',
    'form.js',
    'drafts.js',
    'inputs.js',
    'lookup.js',
    'conflict.js',
    'duplicates.js',
  ],
  below: `[a-z]\\w{0,79}(?:/${UUID})?`,
  withoutScripts: 'This page reads your records with a script. Switch on JavaScript to see them.',
});
