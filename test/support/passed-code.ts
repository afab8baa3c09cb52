/**
 * The code that a request passes, by V8's precise coverage: files and functions below a folder that are called each time
 * the request is made. What timers call meanwhile drops out, because not every round has it.
 */
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const ROUNDS = 6;
const WARM_UP = 30;
/** Work after the answer, such as its line in the log, belongs to the request. */
const SETTLE_MS = 20;

export interface PassedCode {
  /** Names of the called functions by file. */
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly functions: number;
}

/** `request` is made in the process of its server; `prepare` runs before each one and is not counted. */
export async function passedCode(
  folder: string,
  request: () => Promise<unknown>,
  prepare: () => Promise<unknown> = async () => {},
): Promise<PassedCode> {
  const root = `${pathToFileURL(join(import.meta.dirname, '..', '..', folder)).href}/`;
  for (let i = 0; i < WARM_UP; i++) {
    await prepare();
    await request();
  }
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    let common: Set<string> | undefined;
    for (let round = 0; round < ROUNDS; round++) {
      await prepare();
      await pause(SETTLE_MS);
      await session.post('Profiler.takePreciseCoverage');
      await request();
      await pause(SETTLE_MS);
      const { result } = await session.post('Profiler.takePreciseCoverage');
      const called = new Set(
        result
          .filter(({ url }) => url.startsWith(root))
          .flatMap(({ url, functions }) =>
            functions
              .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
              .map(({ functionName, ranges }) => `${url.slice(root.length)} ${ranges[0]!.startOffset} ${functionName}`),
          ),
      );
      common = common ? common.intersection(called) : called;
    }
    const files = new Map<string, string[]>();
    for (const one of common ?? []) {
      const [file = '', , name = ''] = one.split(' ');
      files.set(file, [...(files.get(file) ?? []), name || '(anonymous)']);
    }
    return { files, functions: common?.size ?? 0 };
  } finally {
    session.disconnect();
  }
}
