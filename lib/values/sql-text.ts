/** Names and texts as parts of SQL. */

/** A quoted identifier. apiNames are checked at deployment; quoting is the second safeguard. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A text as an SQL constant, safe also between dollar quotes. */
export function literal(text: string): string {
  if (!/[\\$]/.test(text)) return `'${text.replaceAll("'", "''")}'`;
  return `E'${text.replace(/[\\'$]/g, (char) => (char === '$' ? '\\x24' : char + char))}'`;
}
