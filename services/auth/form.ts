/** A form that a page has sent, and what it is answered with. */
import type { Page } from '../../web/sign-in/layout.ts';

export interface Form {
  get(name: string): string | null;
}

/** A page, or a redirect. */
export type Answer = Page | { redirect: string };
