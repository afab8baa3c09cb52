/** Problems of a project's files, shown as a compiler does: place, reason, the line, remedy. */
import stringWidth from 'string-width';
import type { OperationOutput } from '../../contracts/operations.ts';
import { ApiFailure, EXIT, Failure } from '../failure.ts';
import { plain } from '../output/table.ts';
import type { Terminal } from '../output/terminal.ts';

/** A problem of a plan, as the API gives it. */
export type Problem = OperationOutput<'metadata.components.validate'>['blocked'][number];

/** A problem to show; one that this program finds itself has no component. */
export interface Finding {
  readonly code: string;
  readonly path: string | null;
  readonly line?: number | null;
  readonly column?: number | null;
  readonly message: string;
  readonly remedy?: string | null;
  readonly type?: string;
  readonly fullName?: string;
}

/** Problems that are shown without --verbose. */
const SHOWN_MAX = 20;
/** Columns of a file's line that are shown around the place of a problem. */
const TAB = '  ';

export interface FindingStyle {
  readonly terminal: Terminal;
  readonly severity: 'error' | 'warning';
  readonly verbose: boolean;
  /** The text of a file of the project, to show the line. */
  text(path: string): string | undefined;
}

/** Findings by their component alone, when the files are absent. */
export const withoutPaths = (findings: readonly Finding[]): Finding[] =>
  findings.map((finding) => (finding.type ? { ...finding, path: null, line: null, column: null } : finding));

/** Remedies in the words of this program. */
const REMEDIES: Readonly<Record<string, string>> = {
  DESTRUCTIVE_CHANGES_NOT_ALLOWED: 'If that is meant: --allow-destructive.',
};

/** Lines that show findings; the rest is counted. */
export function findingLines(findings: readonly Finding[], style: FindingStyle): string[] {
  const shown = style.verbose ? findings : findings.slice(0, SHOWN_MAX);
  const lines = shown.flatMap((finding) => [...oneFinding(finding, style), '']);
  const rest = findings.length - shown.length;
  if (rest > 0) lines.push(style.terminal.paint('dim', `… and ${rest} more (--verbose shows them all)`), '');
  return lines;
}

function oneFinding(finding: Finding, { terminal, severity, text }: FindingStyle): string[] {
  const { code, path, line, column, message, type, fullName } = finding;
  const remedy = REMEDIES[code] ?? finding.remedy;
  const component = type ? `${type} ${fullName ?? ''}`.trim() : '';
  const place = path === null ? component : line ? `${path}:${line}:${column ?? 1}` : path;
  const color = severity === 'error' ? 'red' : 'yellow';
  const lines = [
    `${terminal.paint('bold', plain(place))}: ${terminal.paint([color, 'bold'], severity)}: ${plain(message)} ${terminal.paint('dim', code)}`,
  ];
  const source = path !== null && line ? text(path)?.split('\n')[line - 1] : undefined;
  if (source !== undefined && line) lines.push(...excerpt(source, line, column ?? 1, terminal, color));
  if (remedy) lines.push(`  ${terminal.paint('cyan', 'help:')} ${plain(remedy)}`);
  return lines;
}

/** The line of a file with a caret below the place; of a long line the part around it. */
function excerpt(source: string, line: number, column: number, terminal: Terminal, color: 'red' | 'yellow'): string[] {
  const gutter = `${String(line).padStart(5)} | `;
  const room = Math.max(20, terminal.width - gutter.length - 2);
  const shown = plain(source.replace(/\r$/, '').replaceAll('\t', TAB));
  const at = plain(source.slice(0, column - 1).replaceAll('\t', TAB)).length;
  const from = at < room - 10 ? 0 : at - Math.floor(room / 2);
  const before = `${from > 0 ? '…' : ''}${shown.slice(from > 0 ? from + 1 : 0, at)}`;
  const part = `${before}${shown.slice(at, from + room)}${shown.length > from + room ? '…' : ''}`;
  const caret = `${' '.repeat(stringWidth(before))}${terminal.paint([color, 'bold'], '^')}`;
  return [
    `${terminal.paint('dim', gutter)}${part}`,
    `${' '.repeat(gutter.length - 2)}${terminal.paint('dim', '|')} ${caret}`,
  ];
}

/** The failure of a command that has found problems in files before anything was sent. */
export function localFailure(findings: readonly Finding[]): Failure {
  const [first] = findings;
  const message =
    findings.length === 1
      ? 'A file of the project is not fit to be sent.'
      : `${findings.length} problems in files of the project; they are not fit to be sent.`;
  return new FindingsFailure(first?.code ?? 'CLIENT_PROJECT', message, findings);
}

/** A failure with findings: its command shows them before the sentence. */
export class FindingsFailure extends Failure {
  readonly findings: readonly Finding[];

  constructor(code: string, message: string, findings: readonly Finding[], more: Record<string, unknown> = {}) {
    super(code, EXIT.validation, message, { body: { code, message, problems: findings, ...more } });
    this.findings = findings;
  }
}

/** The problems in files of a request that was refused as a whole: paths and syntax. */
export function findingsOf(error: unknown): Finding[] {
  if (!(error instanceof ApiFailure)) return [];
  return (error.answer.errors ?? []).flatMap(({ pointer, code, message, params }) => {
    const [, files, encoded] = pointer.split('/');
    if (files !== 'files' || encoded === undefined) return [];
    const path = encoded.replaceAll('~1', '/').replaceAll('~0', '~');
    return [{ code, path, message, line: numberOf(params['line']), column: numberOf(params['column']) }];
  });
}

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);
