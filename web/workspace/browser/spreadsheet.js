/**
 * A list as a file for spreadsheets. It is made of the pages of the list, not by a job: so it has the search, the order, the
 * columns and the names that the user sees, and needs no right besides reading.
 */
import { saveTexts } from '../../shared/save.js';
import { isReference, query } from './objects.js';
import { isNumber, written } from './values.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { Field, ObjectType, RecordData, RecordPage, Values } from './types.d.ts' */

const PAGE_SIZE = 200;
/** Longer lists are exported by a job. */
export const ROWS_MAX = 10_000;

/**
 * @param {ObjectType} type
 * @param {readonly Field[]} columns
 * @param {Values} asked filters, order and search
 * @param {Person} person
 * @param {(count: number) => void} progress
 * @returns {Promise<{ count: number, isCut: boolean }>}
 */
export async function saveList(type, columns, asked, person, progress) {
  const fields = withCurrencies(type, columns);
  const comma = new Intl.NumberFormat(person.locale).format(1.5).includes(',');
  // Spreadsheets of places with a decimal comma part columns by semicolons.
  const delimiter = comma ? ';' : ',';
  let count = 0;
  let isCut = false;
  await saveTexts(`${type.labelPlural}.csv`, 'text/csv', rows());
  return { count, isCut };

  async function* rows() {
    // Spreadsheets recognize UTF-8 by the byte order mark.
    yield `\ufeff${line(fields.map(({ label }) => safe(label)))}`;
    /** @type {string | null} */
    let cursor = null;
    do {
      /** @type {RecordPage} */
      const page = await query(type, fields, { ...asked, take: PAGE_SIZE, ...(cursor ? { cursor } : {}) });
      for (const record of page.records) yield line(fields.map((field) => cell(record, field)));
      count += page.records.length;
      progress(count);
      cursor = page.nextCursor;
    } while (cursor && count < ROWS_MAX);
    isCut = cursor !== null;
  }

  /**
   * @param {RecordData} record
   * @param {Field} field
   */
  function cell(record, field) {
    const value = record[field.apiName];
    if (value === null || value === undefined) return '';
    if (isNumber(field)) return comma ? String(value).replace('.', ',') : String(value);
    if (isReference(field)) return safe(record._expanded?.[field.apiName]?.name ?? '');
    // ISO dates are read by every spreadsheet.
    if (field.fieldType === 'date' || field.fieldType === 'dateTime') return String(value);
    return safe(written(value, field, person, record));
  }

  /** @param {readonly string[]} cells */
  function line(cells) {
    return `${cells.map((text) => (/["\r\n;,]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(delimiter)}\r\n`;
  }
}

/**
 * Amounts are followed by their currencies.
 * @param {ObjectType} type
 * @param {readonly Field[]} columns
 */
function withCurrencies({ byName }, columns) {
  const all = columns.flatMap((field) => [field, byName.get(field.currencyField ?? '') ?? field]);
  return [...new Set(all)];
}

/** Must not be a formula to a spreadsheet (docs/reference/bulk.md#spreadsheets). @param {string} text */
const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
