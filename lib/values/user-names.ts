/**
 * Names by which people tell users apart: without characters that cannot be seen, or that look like others. One pass over the
 * text. Source: docs/reference/records.md#names-of-users.
 */
import { firstCodePoint } from './code-points.ts';

/** Before any normalization, which can make a text longer. */
export const USERNAME_MAX_CHARS = 320;

/** Blanks other than the plain one, controls, format characters (zero width, bidi), what is unassigned, private or half a pair. */
const UNSEEN = /^(?:[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|\u2800)$/u;
const ODD_BLANK = /^(?! )\p{Zs}$/u;
const BLANK = /^\s$/u;
/** Joiners, without which names in some scripts are spelled wrongly. */
const JOINERS: ReadonlySet<string> = new Set(['\u200C', '\u200D']);
/** Scripts with letters that look alike. */
const LOOKALIKES: readonly [name: string, letters: RegExp][] = [
  ['Latin', /^\p{Script=Latin}$/u],
  ['Cyrillic', /^\p{Script=Cyrillic}$/u],
  ['Greek', /^\p{Script=Greek}$/u],
  ['Armenian', /^\p{Script=Armenian}$/u],
  ['Cherokee', /^\p{Script=Cherokee}$/u],
];
/** Between the parts of a name, each of which has one script: `иван@example.com`. */
const SEPARATOR = /^[@.\-_+ ]$/;

const codeOf = (character: string): string =>
  `U+${firstCodePoint(character).toString(16).toUpperCase().padStart(4, '0')}`;

/** Why a text can be no username, to be read behind the name of its field; null: it can. */
export function usernameProblem(text: string): string | null {
  if (text.length > USERNAME_MAX_CHARS) return `must have at most ${USERNAME_MAX_CHARS} characters.`;
  let script: string | null = null;
  let position = 0;
  let last = '';
  for (const character of text) {
    position++;
    last = character;
    const where = `${codeOf(character)} at position ${position}`;
    if (UNSEEN.test(character)) return `contains ${where}, which cannot be seen.`;
    if (ODD_BLANK.test(character)) return `contains ${where}, which looks like a plain blank.`;
    if (position === 1 && BLANK.test(character)) return `must not begin with a blank (${codeOf(character)}).`;
    if (SEPARATOR.test(character)) script = null;
    const found = LOOKALIKES.find(([, letters]) => letters.test(character))?.[0] ?? null;
    if (found === null) continue;
    if (script !== null && script !== found)
      return `mixes scripts: ${where} is ${found}, and letters before it are ${script}.`;
    script = found;
  }
  return BLANK.test(last) ? `must not end with a blank (${codeOf(last)}).` : null;
}

/** The same for the name that is shown of a user, which may mix scripts. */
export function displayNameProblem(text: string): string | null {
  let position = 0;
  for (const character of text) {
    position++;
    if (UNSEEN.test(character) && !JOINERS.has(character))
      return `contains ${codeOf(character)} at position ${position}, which cannot be seen.`;
  }
  return null;
}
