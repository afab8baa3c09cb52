import { textType } from './text-family.ts';

/** An absolute http or https address; other schemes could run code where it is displayed. Kept as written. */
export const url = textType({
  name: 'url',
  normalForm: 'erp.match_url',
  becomes: ['text', 'longText'],
  maxChars: 2_048,
  length: 2048,
  short: true,
  searchable: true,
  attributes: ['length', 'unique', 'defaultValue', 'required'],
  problem: (value) =>
    /^https?:\/\/[^\s\p{C}]+$/iu.test(value) && URL.canParse(value)
      ? null
      : 'must be an absolute http or https address.',
  schema: { format: 'uri' },
  example: 'https://example.com/catalogue?page=2',
});
