/** Names and texts as they stand in SQL. */

/** A quoted identifier. apiNames are checked at deployment; quoting is the second lock. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A text as a constant that also stands well between dollar quotes. */
export function literal(text: string): string {
  if (!/[\\$]/.test(text)) return `'${text.replaceAll("'", "''")}'`;
  return `E'${text.replace(/[\\'$]/g, (char) => (char === '$' ? '\\x24' : char + char))}'`;
}
