/** A plan as people read it before it happens. */

import type { OperationOutput } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import { locate, pathOf } from '../../lib/metadata/paths.ts';
import { plain, shorten } from '../output/table.ts';
import type { Terminal } from '../output/terminal.ts';
import { counted } from '../output/values.ts';

type Validation = OperationOutput<'metadata.components.validate'>;
/** The changes of a plan, as validations and deployments hold them. */
export type Changes = Pick<Validation, 'creates' | 'updates' | 'deletes' | 'noops'>;
export type Change = Validation['creates'][number];

/** Maximum shown without --verbose: changes of each kind, properties of each change, dependents of each. */
const CHANGES_MAX = 30;
const PROPERTIES_MAX = 12;
const DEPENDENTS_MAX = 5;

export interface PlanStyle {
  readonly terminal: Terminal;
  readonly verbose: boolean;
}

type Sign = '+' | '~' | '-';

/** Lines of a plan. */
export function planLines(changes: Changes, style: PlanStyle): string[] {
  const lines = [
    ...section('+', changes.creates, style),
    ...section('~', changes.updates, style),
    ...section('-', changes.deletes, style),
  ];
  return [...lines, ...(lines.length > 0 ? [''] : []), summary(changes, style)];
}

/** `2 to create, 1 to update, 25 unchanged`. */
export function summary({ creates, updates, deletes, noops }: Changes, { terminal }: PlanStyle): string {
  if (creates.length + updates.length + deletes.length + noops.length === 0) return 'Nothing to change.';
  if (creates.length + updates.length + deletes.length === 0)
    return `Nothing to change; ${counted(noops.length, 'component is', 'components are')} as on the platform.`;
  const parts = [
    `${creates.length} to create`,
    `${updates.length} to update`,
    deletes.length > 0 ? terminal.paint('red', `${deletes.length} to delete`) : '0 to delete',
    `${noops.length} unchanged`,
  ];
  const destructive = updates.filter((change) => change.destructive).length;
  const kept = deletes.filter((change) => isKept(change)).length;
  const irreversible = [...creates, ...updates, ...deletes].filter((change) => !change.reversible).length;
  return [
    `${parts.join(', ')}.`,
    ...(destructive > 0
      ? [terminal.paint(['red', 'bold'], `${counted(destructive, 'change loses', 'changes lose')} data.`)]
      : []),
    ...(kept > 0
      ? [
          terminal.paint(
            ['red', 'bold'],
            `Records and values of ${counted(kept, 'deletion', 'deletions')} are kept for ${LIMITS.rollback_days} days, and a rollback brings them back.`,
          ),
        ]
      : []),
    ...(irreversible > 0 ? [`${counted(irreversible, 'change', 'changes')} cannot be rolled back.`] : []),
  ].join(' ');
}

/** A deletion of what holds records or values. A layout or a rule holds none, though its deletion must be allowed, too. */
const isKept = ({ type, destructive, reversible }: Change): boolean =>
  destructive && reversible && (type === 'CustomObject' || type === 'CustomField');

/** How many files a plan leaves out, because they could not be read. */
export function unreadOf(
  { creates, updates, deletes, noops }: Changes,
  blocked: readonly { path: string | null }[],
): number {
  const planned = new Set(
    [...creates, ...updates, ...deletes, ...noops].map(({ type, fullName }) => pathOf(type, fullName)),
  );
  const paths = blocked.flatMap(({ path }) => (path !== null && locate(path) && !planned.has(path) ? [path] : []));
  return new Set(paths).size;
}

/** Says that files are not in a plan. */
export const unreadText = (count: number, terminal: Terminal): string =>
  terminal.paint(
    ['red', 'bold'],
    `${counted(count, 'file', 'files')} could not be read and ${count === 1 ? 'is' : 'are'} not in this plan.`,
  );

function section(sign: Sign, changes: readonly Change[], style: PlanStyle): string[] {
  const shown = style.verbose ? changes : changes.slice(0, CHANGES_MAX);
  const rest = changes.length - shown.length;
  return [
    ...shown.flatMap((change) => changeLines(sign, change, style)),
    ...(rest > 0 ? [style.terminal.paint('dim', `  … and ${rest} more (--verbose shows them all)`)] : []),
  ];
}

const COLORS = { '+': 'green', '~': 'yellow', '-': 'red' } as const;

function changeLines(sign: Sign, change: Change, style: PlanStyle): string[] {
  const { terminal } = style;
  const { records, dependents } = change.impact;
  const facts = [
    ...(change.destructive && sign !== '-' ? [terminal.paint(['red', 'bold'], 'loses data')] : []),
    ...(records !== null ? [counted(records, 'record', 'records')] : []),
    ...(sign === '-' && isKept(change) ? [`kept for ${LIMITS.rollback_days} days`] : []),
    ...(change.reversible ? [] : ['cannot be rolled back']),
  ];
  const head = `${terminal.paint(change.destructive ? 'red' : COLORS[sign], sign)} ${plain(change.type)} ${terminal.paint('bold', plain(change.fullName))}`;
  return [
    `  ${head}${facts.length > 0 ? `  ${facts.join(', ')}` : ''}`,
    // A component that is new or goes is named by itself; what is in it stands in its file.
    ...(sign === '~' || style.verbose ? propertyLines(change, style) : []),
    ...dependentLines(dependents, style),
  ];
}

function propertyLines({ properties }: Change, { terminal, verbose }: PlanStyle): string[] {
  const shown = verbose ? properties : properties.slice(0, PROPERTIES_MAX);
  const width = Math.min(30, Math.max(0, ...shown.map(({ name }) => name.length)));
  const lines = shown.flatMap(({ name, from, to }) => {
    const room = terminal.width - width - 8;
    const [before, after] = [valueText(from), valueText(to)];
    const label = `      ${plain(name).padEnd(width)}  `;
    const arrow = terminal.paint('dim', '→');
    if (verbose || before.length + after.length + 3 <= room)
      return [`${label}${terminal.paint('red', before)} ${arrow} ${terminal.paint('green', after)}`];
    const indent = ' '.repeat(label.length - 2);
    return [
      `${label}${terminal.paint('red', shorten(before, room))}`,
      `${indent}${arrow} ${terminal.paint('green', shorten(after, room))}`,
    ];
  });
  const rest = properties.length - shown.length;
  return rest > 0 ? [...lines, terminal.paint('dim', `      … and ${rest} more properties`)] : lines;
}

/** A value of a property on one line. */
const valueText = (value: unknown): string => (value === null ? '(none)' : plain(JSON.stringify(value)));

function dependentLines(
  dependents: readonly { type: string; fullName: string }[],
  { terminal, verbose }: PlanStyle,
): string[] {
  if (dependents.length === 0) return [];
  const shown = verbose ? dependents : dependents.slice(0, DEPENDENTS_MAX);
  const rest = dependents.length - shown.length;
  const names = shown.map(({ type, fullName }) => plain(`${type} ${fullName}`));
  if (rest > 0) names.push(`and ${rest} more`);
  return wrapped(names, terminal.width - 14).map((line, i) =>
    terminal.paint('dim', `${i === 0 ? '      used by ' : '              '}${line}`),
  );
}

/** Names with commas between them, in lines of at most this width where the names allow it. */
export function wrapped(names: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const [i, name] of names.entries()) {
    const text = i < names.length - 1 ? `${name},` : name;
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + text.length <= width) lines[lines.length - 1] = `${last} ${text}`;
    else lines.push(text);
  }
  return lines;
}
