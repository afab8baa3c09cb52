/** Commands as the pages print them, in bash, with `npm run` for the scripts of the project as they are. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { compileCache } from '../support/processes.ts';
import { root } from '../support/sources.ts';

const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

/** Without npm's start of a second. */
export const NPM_RUN = `
npm() {
  shift; [ "$1" != --silent ] || shift
  local name=$1; shift; [ "\${1-}" != -- ] || shift
  "$NODE" "$ROOT/scripts/$name.ts" "$@"
}
`;

interface Printed {
  /** Functions that stand for programs that are not here. */
  readonly functions: string;
  readonly text: string;
  /** Working directory and home directory. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Typed input. */
  readonly input: string;
}

/** Runs a text until its first command that fails; answers what it printed, stderr last. */
export async function runPrinted({ functions, text, folder, env, input }: Printed): Promise<string> {
  const running = promisify(execFile)('bash', ['--norc', '-ec', `${NPM_RUN}${functions}\nset -o pipefail\n${text}`], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...compileCache(), ROOT: root, NODE: process.execPath, ...env },
    maxBuffer: OUTPUT_MAX_BYTES,
  });
  running.child.stdin?.end(input);
  try {
    const { stdout, stderr } = await running;
    return stdout + stderr;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${text}\n${stdout}\n${stderr}`);
  }
}
