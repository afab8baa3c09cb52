/**
 * RFC 3339 in UTC with milliseconds at most, in the one form of the API: `2026-11-21T00:01:22.123+00:00`, as
 * PostgreSQL prints it in JSON, so that record pages need no conversion.
 */
export const formatTimestamp = (date: Date | number): string => {
  const iso = new Date(date).toISOString();
  return `${iso.endsWith('.000Z') ? iso.slice(0, -5) : iso.slice(0, -1).replace(/(?<!0)0+$/, '')}+00:00`;
};

/**
 * An IANA name of a time zone, also a link such as Asia/Kolkata, which means the same here and in PostgreSQL: a place,
 * or UTC. Abbreviations such as CET and offsets do not.
 */
export function isTimezone(name: string): boolean {
  if (name !== 'UTC' && !/^[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+)+$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
