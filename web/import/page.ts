/**
 * The page on which people bring spreadsheets in, for every address below /import: one document without data, with
 * scripts that ask the public API in the name of the person. Source: docs/reference/pages.md.
 */
import { IMPORTS } from '../../contracts/auth.ts';
import { appPage } from '../app-page.ts';

export const IMPORT_PAGE = appPage({
  label: 'import',
  client: IMPORTS,
  withoutScripts: 'This page reads your file with a script. Switch on JavaScript to use it.',
});
