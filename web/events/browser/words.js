/** The API's states and reasons in words for people. */
import { element } from '../../shared/elements.js';

/** @import { State, Status } from './types.d.ts' */

/** @type {Record<State, string>} */
const STATES = { active: 'Active', paused: 'Paused', suspended: 'Suspended' };

/** @type {Record<Status, string>} */
export const STATUSES = { pending: 'Retrying', delivered: 'Delivered', parked: 'Failed' };

const REASONS = new Map([
  ['failing', 'Every attempt has failed for three days. Resume it once the receiver works again.'],
  ['gone', 'The receiver has answered 410: it is gone. Resume it if that was a mistake.'],
  ['userInactive', 'Your user was not active, or might not use the API.'],
  ['connectionEnded', 'You have ended the connection of the application that made it. Resume it to keep it.'],
  ['clientDisabled', 'The application that made it was disabled. Resume it to keep it.'],
]);

/** @param {State} state */
export const stateBadge = (state) => element('strong', { class: `badge ${state}` }, STATES[state]);

/** @param {Status} status */
export const statusBadge = (status) => element('strong', { class: `badge ${status}` }, STATUSES[status]);

/** @param {string} reason */
export const reasonOf = (reason) => REASONS.get(reason) ?? reason;

/** @param {number} count */
export const failures = (count) => (count === 1 ? '1 failed attempt' : `${count} failed attempts`);

/**
 * A text that a program reads.
 * @param {string} text
 */
export const code = (text) => element('code', { dir: 'ltr' }, text);
