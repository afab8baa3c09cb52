/** Loaded by mocha before every run: nothing that a test opened may outlive it. */
import fc from 'fast-check';
import Mocha from 'mocha';
import { databasesLeftOpen, stopOwnServer } from './database.ts';
import { platformsLeftRunning } from './platform.ts';
import { processesLeftRunning, removeLogs } from './processes.ts';
import { removeTemporaryFolders } from './temporary.ts';

// Mocha does not print the cause of an error, which says what a property failed with.
fc.configureGlobal({ includeErrorInReport: true });

/** Of .mocharc.json, too. Less would make a busy machine a failure: a timeout only ends what hangs. */
const TIMEOUT_MIN_MS = 180_000;
for (const { prototype } of [Mocha.Suite, Mocha.Runnable]) {
  const { timeout } = prototype as { timeout: (this: object, ms?: number | string) => unknown };
  Object.assign(prototype, {
    timeout(this: object, ms?: number | string): unknown {
      return ms === undefined ? timeout.call(this) : timeout.call(this, Math.max(Number(ms), TIMEOUT_MIN_MS));
    },
  });
}

let failed = false;

export const mochaHooks = {
  afterEach(this: Mocha.Context): void {
    failed ||= this.currentTest?.state === 'failed';
  },
  async afterAll(): Promise<void> {
    const left = [
      ...platformsLeftRunning().map((name) => `platform ${name} was not stopped`),
      ...processesLeftRunning().map((name) => `process ${name} was not stopped`),
      ...databasesLeftOpen().map((name) => `database ${name} was not dropped`),
    ];
    await stopOwnServer();
    if (!failed) removeLogs();
    removeTemporaryFolders();
    if (left.length) throw new Error(`A test left something behind: ${left.join('; ')}.`);
  },
};
