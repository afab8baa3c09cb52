/** Records as arguments: `Object/id`. */
import { usage } from '../failure.ts';

export const RECORD = 'Object/id of a record, such as Account/0193d3a8-…';

export function parseReference(text: string): { objectApiName: string; recordId: string } {
  const [objectApiName = '', recordId = '', ...more] = text.split('/');
  if (!objectApiName || !recordId || more.length) throw usage(`${text} is no record.`, `Write ${RECORD}.`);
  return { objectApiName, recordId };
}
