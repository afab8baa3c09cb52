import { decimalType } from './decimal-family.ts';

/** Percent as people say it: 19 is 19 %. */
export const percent = decimalType('percent', {
  digits: { precision: 9, scale: 4 },
  becomes: ['decimal', 'currency'],
  example: 19,
});
