/** Properties of standard output and standard error: colours, width, and whether a person can answer questions. */
import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';
import { environment } from '../environment.ts';
import { plain } from './table.ts';

type Style = Parameters<typeof styleText>[0];

const WIDTH_DEFAULT = 100;

export interface Terminal {
  /** A person reads standard output: tables and colours. */
  readonly pretty: boolean;
  /** A person reads standard error, and progress may move. */
  readonly live: boolean;
  /** A person can answer. */
  readonly interactive: boolean;
  readonly width: number;
  /** Paints text for standard output, where that is a terminal that wants colours. */
  paint(style: Style, text: string): string;
  /** The same for standard error. */
  paintError(style: Style, text: string): string;
  /** Asks on standard error; only when `interactive`. */
  ask(question: string): Promise<string>;
}

/** The terminal of this process. `color: false` is --no-color; NO_COLOR and FORCE_COLOR are Node's own rules. */
export function openTerminal({ color, json }: { color: boolean; json: boolean }): Terminal {
  const { stdout, stderr, stdin } = process;
  const paint =
    (stream: NodeJS.WriteStream) =>
    (style: Style, text: string): string =>
      color && !json ? styleText(style, text, { stream }) : text;
  const attended = !environment.unattended();
  return {
    pretty: stdout.isTTY === true && !json,
    live: stderr.isTTY === true && attended && !json,
    interactive: stdin.isTTY === true && stderr.isTTY === true && attended && !json,
    width: stdout.columns || WIDTH_DEFAULT,
    paint: paint(stdout),
    paintError: paint(stderr),
    async ask(question) {
      const lines = createInterface({ input: stdin, output: stderr });
      try {
        return (await lines.question(plain(question))).trim();
      } finally {
        lines.close();
      }
    },
  };
}
