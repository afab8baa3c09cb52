import { textType } from './text-family.ts';

const LOCAL = /^[^\s@<>()[\]\\,;:"\p{C}]{1,64}$/u;
const LABEL = /^[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}-]{0,61}[\p{L}\p{N}\p{M}])?$/u;

function problem(value: string): string | null {
  const at = value.lastIndexOf('@');
  const labels = value.slice(at + 1).split('.');
  const good =
    at > 0 &&
    LOCAL.test(value.slice(0, at)) &&
    !/^\.|\.\.|\.$/.test(value.slice(0, at)) &&
    labels.length > 1 &&
    labels.every((label) => LABEL.test(label));
  return good ? null : 'must be an e-mail address such as ada@example.com.';
}

/**
 * An address of the form local@domain.tld, letters of any script, kept as written. RFC 5321, RFC 6531 without quoting.
 */
export const email = textType({
  name: 'email',
  normalForm: 'erp.match_email',
  becomes: ['text', 'longText'],
  length: 254,
  short: true,
  searchable: true,
  attributes: ['length', 'unique', 'externalId', 'caseSensitive', 'defaultValue', 'required'],
  problem,
  schema: { format: 'email' },
  example: 'ada@example.com',
});
