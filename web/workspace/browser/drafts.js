/**
 * Keeps what was entered in a form and not saved while the page is open, and over a sign-in of the same user, which leaves
 * the page. Nothing of it is stored anywhere else.
 */
import { beforeSignIn } from '../../shared/sign-in.js';

/** @import { Values } from './types.d.ts' */

const STORED = 'erp-app-drafts';

/** By address. @type {Map<string, Values>} */
const drafts = new Map();

/**
 * Takes back what a sign-in has interrupted.
 * @param {string} userId
 */
export function takeDrafts(userId) {
  const stored = JSON.parse(sessionStorage.getItem(STORED) ?? 'null');
  sessionStorage.removeItem(STORED);
  if (stored?.userId === userId) for (const [address, values] of stored.drafts) drafts.set(address, values);
  beforeSignIn(() => {
    leaving = true;
    if (drafts.size > 0) sessionStorage.setItem(STORED, JSON.stringify({ userId, drafts: [...drafts] }));
  });
  window.addEventListener('beforeunload', (event) => {
    if (drafts.size > 0 && !leaving) event.preventDefault();
  });
}

let leaving = false;

const here = () => location.pathname + location.search;

export const draft = () => drafts.get(here()) ?? null;

/** @param {Values} values none: there is nothing to keep */
export function keepDraft(values) {
  if (Object.keys(values).length === 0) drafts.delete(here());
  else drafts.set(here(), values);
}

export const dropDraft = () => drafts.delete(here());
