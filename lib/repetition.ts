/** How an event repeats, as mails say it in words. */

export const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'] as const;
type Weekday = (typeof WEEKDAYS)[number];

export interface Repetition {
  readonly pattern: RepetitionPattern | null;
  /** It takes place so many times; null: up to `until`, or for ever. */
  readonly count: number | null;
  /** The last day, YYYY-MM-DD. */
  readonly until: string | null;
  /** Times are left out, added or moved. */
  readonly exceptions: boolean;
}

/** The rules that people speak of; there are others. */
export interface RepetitionPattern {
  readonly unit: 'day' | 'week' | 'month' | 'year';
  readonly interval: number;
  /** Of a week; of a month the one day that `place` counts. */
  readonly weekdays: readonly Weekday[];
  /** Which one in a month, from 1 to 5, or -1: the last. */
  readonly place: number | null;
  readonly monthDay: number | null;
}
