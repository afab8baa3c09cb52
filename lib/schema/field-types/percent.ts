import { decimalType } from './decimal-family.ts';

/** Percent as people say it: 19 is 19 %. */
export const percent = decimalType('percent', { example: 19 });
