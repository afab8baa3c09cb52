import { readOnly } from './common.ts';
import { textType } from './text-family.ts';
import type { FieldType } from './types.ts';

/** A running number in the field's format, given by the platform when the record is created. */
export const autoNumber: FieldType = {
  ...textType({
    name: 'autoNumber',
    length: 80,
    short: true,
    searchable: true,
    attributes: ['format', 'externalId'],
    example: 'INV-00042',
  }),
  writable: false,
  numbered: true,
  needs: ['format'],
  parseInput: (_value, field, pointer) => readOnly(field, pointer),
  example: (field) => (field.format ?? '{00000}').replace(/\{0+\}/, (zeros) => '42'.padStart(zeros.length - 2, '0')),
};
