/** Loaded by mocha before every run: nothing that a test opened may outlive it. */
import { databasesLeftOpen, stopOwnServer } from './database.ts';
import { platformsLeftRunning } from './platform.ts';
import { processesLeftRunning, removeLogs } from './processes.ts';
import { removeTemporaryFolders } from './temporary.ts';

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
