import { TEXT_MAX_CHARS } from './common.ts';
import { textType } from './text-family.ts';

/** Prose: too long to sort or group by. */
export const longText = textType({
  name: 'longText',
  length: TEXT_MAX_CHARS,
  chars: { default: 32_768, max: TEXT_MAX_CHARS },
  maxChars: TEXT_MAX_CHARS,
  short: false,
  searchable: true,
  attributes: ['length', 'defaultValue', 'required'],
  example: 'Deliver to the back entrance.\nRing twice.',
});
