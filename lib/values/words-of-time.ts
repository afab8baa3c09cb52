/** Moments as the platform writes them to people. Pure. */

const localeOf = (language: string): string => (language === 'en' ? 'en-GB' : language);

/** The day of a moment of UTC. `language`: BCP 47. */
export const dayIn = (language: string, at: number): string =>
  new Intl.DateTimeFormat(localeOf(language), { dateStyle: 'long', timeZone: 'UTC' }).format(at);

export const timeIn = (language: string, timeZone: string, at: number): string =>
  `${new Intl.DateTimeFormat(localeOf(language), {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone,
  }).format(at)} (${timeZone})`;
