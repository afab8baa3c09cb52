import { decimalType } from './decimal-family.ts';

/** A quantity or factor. */
export const decimal = decimalType('decimal', { becomes: ['currency', 'percent'], example: 12.5 });
