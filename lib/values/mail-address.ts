/** Addresses of mailboxes, as far as mails are sent to them. */
import { domainToASCII } from 'node:url';

/** RFC 5321 section 4.5.3.1. */
const ADDRESS_MAX_CHARS = 254;
const LOCAL_MAX_CHARS = 64;
/** Letters of any script and what RFC 5322 lets stand without quotes: neither blanks nor anything that ends a header. */
const LOCAL = /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*$/u;
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
/** Names of this machine, for trials. */
const LOCALHOST = 'localhost';

/** The address as a mail server takes it, with the domain in ASCII (IDNA); null when it is none. */
export function mailAddress(text: string): string | null {
  if (text.length > ADDRESS_MAX_CHARS) return null;
  const at = text.lastIndexOf('@');
  const local = text.slice(0, at);
  if (at < 1 || local.length > LOCAL_MAX_CHARS || !LOCAL.test(local)) return null;
  const domain = domainToASCII(text.slice(at + 1));
  if (domain !== LOCALHOST && !DOMAIN.test(domain)) return null;
  const address = `${local}@${domain}`;
  return address.length > ADDRESS_MAX_CHARS ? null : address;
}

/** Control characters, and those that turn the direction of a text or cannot be seen. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** A name as it may stand in a header or a sentence: one line, of bounded length. */
export function nameInMail(text: string, maxChars: number): string {
  const seen = text
    .slice(0, 8 * maxChars)
    .toWellFormed()
    .replaceAll(UNSEEN, ' ');
  const points = [...seen.replaceAll(/\s+/g, ' ').trim()];
  return points.length > maxChars
    ? `${points
        .slice(0, maxChars - 1)
        .join('')
        .trimEnd()}…`
    : points.join('');
}

/** Mail programs turn it into a link, which another person's text must not become. */
export const looksLikeLink = (text: string): boolean => /:\/\/|\bwww\.|@|\w\.\p{L}{2,}/iu.test(text);

/** Characters of sentences that names do not have. */
const OF_SENTENCES = /[!?;:<>]/;
const WORDS_MAX = 8;
/** More digits are a telephone number or a payment date. */
const FIGURES_MAX = 3;

/** True for a plausible name of a person: a stranger's words in our mail would be believed. */
export const looksLikeName = (text: string): boolean =>
  text !== '' &&
  !OF_SENTENCES.test(text) &&
  !looksLikeLink(text) &&
  text.split(' ').length <= WORDS_MAX &&
  (text.match(/\p{Nd}/gu) ?? []).length <= FIGURES_MAX;

const ONE_WORD = /^[\p{L}\p{M}\p{N}_.'+-]{1,64}$/u;

/** True for a username that no mail program turns into a link to a page. */
export const looksLikeUsername = (text: string): boolean =>
  mailAddress(text) !== null || (ONE_WORD.test(text) && !looksLikeLink(text));
