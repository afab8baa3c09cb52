import { decimalType } from './decimal-family.ts';

/** An amount of money; its ISO 4217 code is in the sibling field that `currencyField` names. */
export const currency = decimalType('currency', {
  attributes: ['currencyField'],
  becomes: ['decimal', 'percent'],
  example: 1249.9,
});
