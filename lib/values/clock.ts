/**
 * The time of the platform: that of the database, which all processes share, carried on by the monotonic clock of this
 * process. What processes compare with each other and what people read is in this time, so neither a machine whose
 * clock is wrong nor one that is put right changes anything. Durations within a process need no time of day: they are
 * measured with `performance.now()`. Source: docs/reference/operations-cluster.md.
 */

const machineTime = Date.now;

/** Of the start of the monotonic clock; until the database has told its time, the clock of the machine is believed. */
let origin = machineTime() - performance.now();

/** Milliseconds since 1970, a whole number. */
export const platformTime = (): number => Math.floor(platformTimeNow());

/** The same with its fractions. */
export const platformTimeNow = (): number => origin + performance.now();

/**
 * The true time lies between the two, as the clock that counts has shown. A time between them stands, so that it does
 * not jump by what a measurement cannot tell.
 */
export function correctPlatformTime(earliest: number, latest: number): void {
  const time = origin + performance.now();
  origin += Math.min(Math.max(time, earliest), latest) - time;
}

/**
 * Libraries that read `Date.now` get the time of the platform too: the authorization server has no other door for the
 * times of its tokens, codes, sessions and cookies.
 */
export function giveLibrariesPlatformTime(): void {
  Date.now = platformTime;
}

/** By how many milliseconds the clock of this machine is ahead. */
export const machineClockOffset = (): number => machineTime() - platformTime();
