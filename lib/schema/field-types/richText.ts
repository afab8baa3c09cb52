import { TEXT_MAX_CHARS } from './common.ts';
import { textType } from './text-family.ts';

/**
 * HTML as the caller sent it; an application that displays it must sanitize it. Not searched: its tags would be found
 * as words.
 */
export const richText = textType({
  name: 'richText',
  length: TEXT_MAX_CHARS,
  chars: { default: TEXT_MAX_CHARS, max: TEXT_MAX_CHARS },
  maxChars: TEXT_MAX_CHARS,
  short: false,
  searchable: false,
  attributes: ['length', 'defaultValue', 'required'],
  example: '<p>Handle with <b>care</b>.</p>',
});
