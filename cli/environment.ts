/** The only reader of the environment in the command line client. */
import { homedir } from 'node:os';
import { join } from 'node:path';

const read = (name: string): string | undefined => process.env[name] || undefined;

export const environment = {
  /** An access token for programs: no profile is read then, and nothing is refreshed. */
  token: (): string | undefined => read('ERP_TOKEN'),
  baseUrl: (): string | undefined => read('ERP_BASE_URL'),
  profile: (): string | undefined => read('ERP_PROFILE'),
  /** Unattended: no browser, no questions, no moving progress. */
  unattended: (): boolean => read('CI') !== undefined && read('CI') !== 'false',
  /** For a program that is started, with more variables. */
  inherited: (more: Readonly<Record<string, string>>): NodeJS.ProcessEnv => ({ ...process.env, ...more }),
  /** Folder of profiles, tokens and unfinished requests. */
  folder: (): string => join(read('XDG_CONFIG_HOME') ?? join(homedir(), '.config'), 'erp'),
};
