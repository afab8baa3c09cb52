import { textType } from './text-family.ts';
import type { FieldType } from './types.ts';

/** One line or a few: names, codes, short notes. */
export const text: FieldType = {
  ...textType({
    name: 'text',
    normalForm: 'erp.match_text',
    becomes: ['longText'],
    length: 255,
    chars: { default: 255, max: 4_000 },
    short: true,
    searchable: true,
    attributes: ['length', 'pattern', 'unique', 'externalId', 'caseSensitive', 'defaultValue', 'required'],
    example: 'Blue paint, 5 l',
  }),
  formulaResult: true,
  holdsCurrencyCode: true,
};
