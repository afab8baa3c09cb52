/**
 * Output of a command, and the only code that writes to the terminal: texts of the platform and of other people
 * lose their control characters here. Results go to standard output, everything else to standard error. With --json standard output
 * holds exactly the JSON of the API and nothing else, and a failure is its error body, as JSON on standard error.
 */

import stringWidth from 'string-width';
import type { ViolationCode } from '../../lib/errors/catalogue.ts';
import type { Violation } from '../../lib/errors/platform-error.ts';
import { ApiFailure, EXIT, type ExitCode, Failure } from '../failure.ts';
import { csvOf } from './csv.ts';
import { type Column, columnsThatFit, pad, plain, safeJson, safeLines, tableLine, widthsOf } from './table.ts';
import type { Terminal } from './terminal.ts';

export interface OutputOptions {
  json: boolean;
  verbose: boolean;
  terminal: Terminal;
}

export class Output {
  readonly json: boolean;
  readonly terminal: Terminal;
  readonly #verbose: boolean;

  constructor({ json, verbose, terminal }: OutputOptions) {
    this.json = json;
    this.terminal = terminal;
    this.#verbose = verbose;
  }

  /**
   * The result of a command: with --json the text that the API has answered, otherwise what `show` prints. An answer
   * without a body (204) prints nothing with --json.
   */
  result(answer: { text: string }, show: () => void): void {
    if (this.json) {
      if (answer.text !== '') this.data(answer.text);
    } else show();
  }

  /** A result of this program itself, which no answer of the API is. */
  value(value: unknown, show: () => void): void {
    if (this.json) this.data(JSON.stringify(value));
    else show();
  }

  /** A line of the result, for people. */
  line(text = ''): void {
    process.stdout.write(`${safeLines(text, { styled: this.terminal.paint('bold', ' ') !== ' ' })}\n`);
  }

  /** JSON, as it is unless a terminal would obey what is in it. */
  data(json: string): void {
    process.stdout.write(`${process.stdout.isTTY ? safeJson(json) : json}\n`);
  }

  /** Rows of a result: a table on a terminal, otherwise a line per row with tabs between its cells and no heading. */
  table(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
    this.tableWriter(columns)(rows);
  }

  /** The same in parts: the first rows say how wide the columns are. */
  tableWriter(columns: readonly Column[]): (rows: readonly (readonly string[])[]) => void {
    if (!this.terminal.pretty)
      return (rows) => {
        for (const row of rows) this.line(row.map(plain).join('\t'));
      };
    let widths: number[] | undefined;
    let shown = columns;
    return (rows) => {
      if (!rows.length) return;
      if (!widths) {
        shown = columns.slice(0, columnsThatFit(columns, rows, this.terminal.width));
        widths = widthsOf(shown, rows, this.terminal.width);
        const left = titlesOf(columns.slice(shown.length));
        if (left.length) this.note(this.terminal.paintError('dim', `No room for: ${left.join(', ')}`));
        this.line(this.terminal.paint('bold', tableLine(shown, widths, titlesOf(shown))));
      }
      for (const row of rows) this.line(tableLine(shown, widths, row));
    };
  }

  /** Rows as CSV with a header, in parts. */
  csvWriter(titles: readonly string[]): (rows: readonly (readonly string[])[]) => void {
    let left: readonly (readonly string[])[] = [titles];
    const write = (text: string): void => {
      process.stdout.write(process.stdout.isTTY ? safeLines(text.replaceAll('\r\n', '\n'), { styled: false }) : text);
    };
    return (rows) => {
      write(csvOf([...left, ...rows]));
      left = [];
    };
  }

  /** Another page follows. */
  more(cursor: string): void {
    // On a terminal the cursor would be most of what one sees.
    this.note(this.terminal.pretty ? 'There are more: --all' : `There are more: --all, or --cursor ${cursor}`);
  }

  /** A table on standard error. */
  noteTable(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
    const widths = widthsOf(columns, rows, this.terminal.width);
    this.note(this.terminal.paintError('bold', tableLine(columns, widths, titlesOf(columns))));
    for (const row of rows) this.note(tableLine(columns, widths, row));
  }

  /** Names and values below each other; separated by tabs when output is no terminal. */
  pairs(pairs: readonly (readonly [name: string, value: string])[]): void {
    const width = Math.max(0, ...pairs.map(([name]) => name.length));
    for (const [name, value] of pairs) {
      const text = plain(value);
      const title = this.terminal.paint('dim', pad(name, width));
      if (!this.terminal.pretty) this.line(`${name}\t${text}`);
      else if (width + 2 + stringWidth(text) <= this.terminal.width) this.line(`${title}  ${text}`);
      // A hash or a command that the terminal would break in the middle of a word.
      else this.line(`${title}\n  ${text}`);
    }
  }

  /** A sentence about what is going on. */
  note(text: string): void {
    process.stderr.write(`${safeLines(text, { styled: this.terminal.paintError('bold', ' ') !== ' ' })}\n`);
  }

  warn(text: string): void {
    this.note(this.terminal.paintError('yellow', `Warning: ${text}`));
  }

  /** Shown by --verbose only. Never pass a secret. */
  trace(text: string): void {
    if (this.#verbose) this.note(this.terminal.paintError('dim', text));
  }

  /** The program ends with this code although the command has printed its result. */
  endWith(code: ExitCode): void {
    process.exitCode = code;
  }

  /** Tells of a failure, and with which code the program ends. */
  failure(error: unknown): ExitCode {
    if (!(error instanceof Failure)) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (this.json) this.#failureData(JSON.stringify({ code: 'CLIENT_FAULT', message: text }));
      else this.note(`This is a fault of erp:\n${text}`);
      return EXIT.error;
    }
    if (this.json) {
      this.#failureData(error instanceof ApiFailure ? oneLine(error) : JSON.stringify(error.body));
      return error.exitCode;
    }
    const { terminal } = this;
    const code = error instanceof ApiFailure ? ` (${error.code})` : '';
    this.note(`${terminal.paintError(['red', 'bold'], 'Error:')} ${plain(error.message)}${code}`);
    if (error instanceof ApiFailure) {
      const violations = error.answer.errors ?? [];
      // One that the sentence above has said, of a field that it names, says nothing more.
      const more = violations.filter(
        ({ field, message, code }) =>
          message !== error.message || code !== error.code || !message.includes(field ?? ' '),
      );
      for (const violation of more) this.note(`  ${violationLine(violation, error.message)}`);
      this.note(terminal.paintError('dim', `  request ${plain(error.requestId ?? '')}`));
    }
    if (error.hint) this.note(error.hint);
    return error.exitCode;
  }

  #failureData(json: string): void {
    process.stderr.write(`${process.stderr.isTTY ? safeJson(json) : json}\n`);
  }
}

const titlesOf = (columns: readonly Column[]): string[] => columns.map(({ title }) => title);

/** The answer of the API as it came, on one line. */
const oneLine = ({ text, answer }: ApiFailure): string =>
  text.startsWith('{') && !text.trimEnd().includes('\n') ? text.trimEnd() : JSON.stringify(answer);

function violationLine({ pointer, field, message, code }: Violation<ViolationCode>, whole: string): string {
  const where = plain(field ?? pointer);
  return message === whole ? `${where} (${code})` : `${where}: ${plain(message)} (${code})`;
}
