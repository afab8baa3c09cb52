import { decimalType } from './decimal-family.ts';

/** A quantity or factor. */
export const decimal = decimalType('decimal', { example: 12.5 });
