/** Running numbers in the format of their field. Pure. Source: docs/reference/field-types.md#running-numbers. */
import { literal } from '../values/sql-text.ts';

/** The text before and after the number, and its minimum number of digits. */
export function numberFormat(format: string | null): { before: string; digits: number; after: string } {
  const [, before = '', zeros = '0', after = ''] = /^([^{}]*)\{(0+)\}([^{}]*)$/.exec(format ?? '{0}') ?? [];
  return { before, digits: zeros.length, after };
}

/** SQL of a number in the format, such as INV-00042; longer numbers keep all their digits. */
export function formattedSql(format: string | null, number: string): string {
  const { before, digits, after } = numberFormat(format);
  return `${literal(before)} || lpad(${number}::text, greatest(${digits}, length(${number}::text)), '0') || ${literal(after)}`;
}
