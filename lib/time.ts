/**
 * RFC 3339 in UTC with milliseconds at most, in the one form of the API: `2026-11-21T00:01:22.123+00:00`, as
 * PostgreSQL prints it in JSON, so that record pages need no conversion.
 */
export const formatTimestamp = (date: Date | number): string => {
  const iso = new Date(date).toISOString();
  return `${iso.endsWith('.000Z') ? iso.slice(0, -5) : iso.slice(0, -1).replace(/0+$/, '')}+00:00`;
};
