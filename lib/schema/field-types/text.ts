import { textType } from './text-family.ts';

/** One line or a few: names, codes, short notes. */
export const text = textType({
  name: 'text',
  length: 255,
  short: true,
  searchable: true,
  attributes: ['length', 'pattern', 'unique', 'externalId', 'caseSensitive', 'defaultValue', 'required'],
  example: 'Blue paint, 5 l',
});
