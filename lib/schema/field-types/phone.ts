import { textType } from './text-family.ts';

/** A telephone number as people write it: digits with the usual separators, an optional `+` and extension. */
export const phone = textType({
  name: 'phone',
  normalForm: 'erp.match_phone',
  becomes: ['text', 'longText'],
  length: 40,
  short: true,
  searchable: true,
  attributes: ['length', 'unique', 'defaultValue', 'required'],
  problem: (value) => {
    const digits = value.replace(/\D/g, '').length;
    return /^\+?[0-9 ()./-]+(?:(?:x|ext\.?) ?[0-9]{1,8})?$/i.test(value) && digits >= 3 && digits <= 24
      ? null
      : 'must be a telephone number such as +49 30 1234567.';
  },
  example: '+49 30 1234567',
});
