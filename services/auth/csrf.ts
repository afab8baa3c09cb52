/** A value that only a page of this server can have put into a form, for one interaction or browser session. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** `purpose`: the page and whom it was given to. */
export const csrfFor = (key: string, purpose: string): string =>
  createHmac('sha256', key).update(purpose).digest('base64url');

export const isSameText = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
