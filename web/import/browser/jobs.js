/** The list of imports that the user has started on this page, the newest first. */
import { call } from '../../shared/api.js';
import { element, foreign } from '../../shared/elements.js';
import { moment } from '../../shared/format.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { Job, ObjectSummary } from './types.d.ts' */

/** More than are shown, because abandoned checks are filtered out. */
const ASKED = 30;
const SHOWN = 8;

/** @type {Record<Job['state'], string>} */
const STATES = {
  OPEN: 'Not uploaded',
  UPLOADED: 'Not started',
  QUEUED: 'Waiting',
  PROCESSING: 'At work',
  CANCELING: 'Being canceled',
  COMPLETED: 'Finished',
  FAILED: 'Stopped',
  CANCELED: 'Canceled',
};

/**
 * @param {ObjectSummary[]} objects
 * @param {Place} place
 * @returns {Promise<HTMLElement[]>} none: there are no imports
 */
export async function earlierImports(objects, place) {
  /** @type {{ records: Job[] }} */
  const { records } = await call(`/bulk/jobs?take=${ASKED}`);
  const jobs = records.filter(({ checkOnly }) => !checkOnly).slice(0, SHOWN);
  if (jobs.length === 0) return [];
  return [
    element('h2', {}, 'Earlier imports'),
    element('ul', { class: 'jobs' }, ...jobs.map((job) => entry(job, objects, place))),
  ];
}

/**
 * @param {Job} job
 * @param {ObjectSummary[]} objects
 * @param {Place} place
 */
function entry({ jobId, objectApiName, createdAt, state, counts }, objects, place) {
  const label = objects.find(({ apiName }) => apiName === objectApiName)?.label ?? objectApiName;
  const numbers = new Intl.NumberFormat(place.locale);
  const rows =
    counts.total === null ? [] : [`${numbers.format(counts.succeeded)} of ${numbers.format(counts.total)} rows`];
  const failed =
    counts.failed > 0 ? [element('span', { class: 'bad' }, `${numbers.format(counts.failed)} failed`)] : [];
  return element(
    'li',
    {},
    element(
      'a',
      { href: `/import/${jobId}` },
      foreign(label),
      ', ',
      element('time', { datetime: createdAt }, moment(createdAt, place)),
    ),
    element(
      'span',
      {},
      ...[STATES[state], ...rows, ...failed].flatMap((part, at) => (at === 0 ? [part] : [' · ', part])),
    ),
  );
}
