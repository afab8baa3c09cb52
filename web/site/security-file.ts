/** `security.txt` (RFC 9116): whom to tell of a security problem of this installation. */
import { DAY_SECONDS, kept, PLAIN, type SharedAnswer } from '../kept.ts';

const DAY_MS = DAY_SECONDS * 1_000;
/** The RFC asks for less than a year; cached copies should be renewed well before. */
const VALID_DAYS = 180;
export const SECURITY_PATH = '/.well-known/security.txt';

/** Gives the file of a moment, which is made anew each day. */
export function securityFile(contact: string, baseUrl: string): (now: number) => SharedAnswer {
  let made: { day: number; file: SharedAnswer } | undefined;
  return (now) => {
    const day = Math.floor(now / DAY_MS);
    if (made?.day !== day) made = { day, file: kept(PLAIN, textOf(contact, baseUrl, day), DAY_SECONDS) };
    return made.file;
  };
}

const textOf = (contact: string, baseUrl: string, day: number): string =>
  [
    `Contact: ${contact}`,
    `Expires: ${new Date((day + VALID_DAYS) * DAY_MS).toISOString()}`,
    'Preferred-Languages: en',
    `Canonical: ${baseUrl}${SECURITY_PATH}`,
    '',
  ].join('\n');
