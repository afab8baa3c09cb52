/**
 * The page on which people decide about requests of agents, for every address below /approvals: one document without data,
 * with scripts that ask the public API in the name of the person. Source: docs/reference/pages.md.
 */
import { APPROVALS } from '../../contracts/auth.ts';
import { appPage } from '../app-page.ts';

export const APPROVALS_PAGE = appPage({
  label: 'approvals',
  client: APPROVALS,
  withoutScripts: 'This page reads what waits for your approval with a script. Switch on JavaScript to use it.',
});
