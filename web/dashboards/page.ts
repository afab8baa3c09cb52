/**
 * The page on which dashboards are drawn, for every address below /dashboards: one document without data, and the
 * scripts and the stylesheet that it may load. What it shows it asks of the public API, with the token of the person
 * who has signed in (docs/decisions/dashboards-page.md).
 */
import { readFileSync } from 'node:fs';
import { DASHBOARDS } from '../../contracts/auth.ts';
import { appPage } from '../app-page.ts';

/** The build of Chart.js that needs no other file. */
const chartLibrary = readFileSync(new URL('chart.umd.min.js', import.meta.resolve('chart.js')));

export const DASHBOARDS_PAGE = appPage({
  label: 'dashboards',
  client: DASHBOARDS,
  styles: ['lists.css'],
  library: ['chart-library.js', chartLibrary],
  withoutScripts: 'This page draws charts with a script. Switch on JavaScript to see it.',
});
