/** Requests whose body is stored as it is. */
import type { Operation } from '../../lib/operation.ts';

export const isStream = ({ requestBody }: Operation): boolean => requestBody?.kind === 'stream';

/** Headers of a request to an operation with a streamed body; none for other operations. */
export function streamHeaders(row: Operation): Record<string, string> {
  if (!isStream(row)) return {};
  const required = (row.headerParameters ?? []).filter((parameter) => parameter.required);
  return {
    'content-type': row.requestBody?.contentTypes?.[0] ?? 'application/octet-stream',
    ...Object.fromEntries(required.map(({ name, example }) => [name.toLowerCase(), String(example)])),
  };
}
