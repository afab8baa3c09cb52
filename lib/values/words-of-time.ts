/** Moments as the platform writes them to people. Pure. */

const localeOf = (language: string): string => (language === 'en' ? 'en-GB' : language);

/** The day of a moment of UTC. `language`: BCP 47. */
export const dayIn = (language: string, at: number): string =>
  new Intl.DateTimeFormat(localeOf(language), { dateStyle: 'long', timeZone: 'UTC' }).format(at);

const DAY_MS = 86_400_000;

/**
 * From one moment to another, with the days of the week; whole days of UTC, of which the last one ends then, where `timeZone`
 * is null.
 */
export function spanIn(language: string, timeZone: string | null, from: number, to: number): string {
  const days = { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' } as const;
  if (timeZone === null)
    return new Intl.DateTimeFormat(localeOf(language), { ...days, timeZone: 'UTC' }).formatRange(from, to - DAY_MS);
  const times = { ...days, hour: '2-digit', minute: '2-digit', timeZone } as const;
  return `${new Intl.DateTimeFormat(localeOf(language), times).formatRange(from, to)} (${timeZone})`;
}

export const timeIn = (language: string, timeZone: string, at: number): string =>
  `${new Intl.DateTimeFormat(localeOf(language), {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone,
  }).format(at)} (${timeZone})`;
