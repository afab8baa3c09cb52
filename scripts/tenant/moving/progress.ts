/** How far a command is, on standard error; and the end that Ctrl-C brings, with nothing left behind. */
import type { Item, Sink } from './items.ts';

const SHOWN_EVERY_MS = 2_000;

/** The operator has stopped the command. */
export class Stopped extends Error {
  constructor() {
    super('Stopped. Nothing is left behind.');
  }
}

/** Counts what goes by to `sink`. */
export function shown(sink: Sink, stopped: AbortSignal): { readonly sink: Sink; readonly done: () => void } {
  let shownAt = performance.now();
  let lasts = false;
  let rows = 0;
  let part = '';
  const say = (text: string): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
    else if (text !== '') process.stderr.write(`${text}\n`);
  };
  return {
    sink: async (item: Item) => {
      if (stopped.aborted) throw new Stopped();
      await sink(item);
      if (item.kind !== 'rows') return;
      if (item.part !== part) [part, rows] = [item.part, 0];
      rows += item.lines.length;
      if (performance.now() - shownAt < SHOWN_EVERY_MS) return;
      shownAt = performance.now();
      lasts = true;
      say(`${part}: ${rows} rows`);
    },
    done: () => {
      if (lasts) say('');
    },
  };
}

/** Runs `work` with a signal that SIGINT and SIGTERM give; a second one ends the process as usual. */
export async function stoppable<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => {
    controller.abort();
    process.removeListener('SIGINT', stop);
    process.removeListener('SIGTERM', stop);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } finally {
    process.removeListener('SIGINT', stop);
    process.removeListener('SIGTERM', stop);
  }
}
