/** Progress of something that takes a while: one line that moves on a terminal, a line now and then elsewhere. */
import { createLogUpdate } from 'log-update';
import type { Output } from './output.ts';
import { plain } from './table.ts';

const BAR_WIDTH = 24;
/** How often a log hears that it goes on. */
const LINE_EVERY_MS = 10_000;

export interface Progress {
  /** The current work, its progress, and its total when known. */
  update(text: string, done?: number, total?: number): void;
  /** Takes the moving line away. */
  end(): void;
}

/** Progress on standard error. `quiet`: without a terminal nothing is said. With --json nothing is said at all. */
export function openProgress(output: Output, { quiet = false } = {}): Progress {
  if (output.terminal.live) return moving(output);
  return output.json || quiet ? { update: () => undefined, end: () => undefined } : inLines(output);
}

function moving({ terminal }: Output): Progress {
  const line = createLogUpdate(process.stderr, { showCursor: true });
  return {
    update(text, done = 0, total = 0) {
      const bar = total > 0 ? `${terminal.paintError('cyan', barOf(done / total))} ${done}/${total}  ` : '';
      line(`${bar}${plain(text)} …`);
    },
    end: () => line.clear(),
  };
}

function barOf(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH);
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
}

function inLines(output: Output): Progress {
  let last = '';
  let at = Number.NEGATIVE_INFINITY;
  return {
    update(text, done = 0, total = 0) {
      const now = performance.now();
      if (text === last && now - at < LINE_EVERY_MS) return;
      [last, at] = [text, now];
      output.note(total > 0 ? `${plain(text)}: ${done} of ${total}` : plain(text));
    },
    end: () => undefined,
  };
}
