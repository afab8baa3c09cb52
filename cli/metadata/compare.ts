/** `erp metadata diff` and `erp metadata hash`. */
import type { Run } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { plain } from '../output/table.ts';
import { counted } from '../output/values.ts';
import { type Difference, differencesOf, patchOf } from './differences.ts';
import { hashOf, readProject } from './folder.ts';
import { retrieveTree } from './into-folder.ts';

export interface DiffOptions {
  dir: string;
  nameOnly?: true | undefined;
  exitCode?: true | undefined;
}

const SIGNS = { created: '+', changed: '~', missing: '!' } as const;
const COLORS = { created: 'green', changed: 'yellow', missing: 'red' } as const;

/** Shows how the folder differs from the platform. */
export async function diff(run: Run, options: DiffOptions): Promise<void> {
  const project = await readProject(options.dir);
  const api = await run.api();
  const { tenant } = (await api.call('me.identity.get', {})).body;
  const tree = await retrieveTree(run, api, project.package, tenant.id);
  const found = differencesOf(project, tree);
  const real = found.filter(({ formattingOnly }) => !formattingOnly);
  const value = {
    metadataVersion: tree.metadataVersion,
    differences: found.map((difference) => {
      const { platform: _, local: __, ...shown } = difference;
      return { ...shown, patch: patchOf(difference) };
    }),
    toDelete: project.destructive.types,
  };
  run.output.value(value, () => {
    // Comments and the order of keys are of the folder alone.
    const shown = run.options.verbose ? found : real;
    for (const difference of shown) show(run, difference, options.nameOnly === true);
    for (const { name, members } of project.destructive.types)
      for (const member of members) run.output.line(paintedHead(run, '-', 'red', `${name} ${member}  to be deleted`));
    if (shown.length + project.destructive.types.length === 0) run.output.line('No differences.');
  });
  if (real.some(({ changedOnPlatform }) => changedOnPlatform))
    run.output.note(
      'Some components were changed on the platform after the retrieve: retrieve and merge before you deploy.',
    );
  if (project.missing.length > 0)
    run.output.note(
      `${counted(project.missing.length, 'file is', 'files are')} gone here, and a deployment does not delete the component: erp metadata delete does.`,
    );
  // As `git diff --exit-code` does it: a difference is no error, so that only those who ask for it get a code.
  if (options.exitCode && real.length + project.destructive.types.length > 0) process.exitCode = EXIT.error;
}

const paintedHead = (run: Run, sign: string, color: 'red' | 'green' | 'yellow', text: string): string =>
  `${run.output.terminal.paint(color, sign)} ${plain(text)}`;

function show(run: Run, difference: Difference, nameOnly: boolean): void {
  const { output } = run;
  const { status, type, fullName, formattingOnly, changedOnPlatform } = difference;
  const notes = [
    ...(status === 'missing' ? ['no file here'] : []),
    ...(formattingOnly ? ['formatting only'] : []),
    ...(changedOnPlatform ? ['changed on the platform since the retrieve'] : []),
  ];
  const text = `${type} ${fullName}${notes.length > 0 ? `  (${notes.join(', ')})` : ''}`;
  output.line(paintedHead(run, SIGNS[status], COLORS[status], text));
  if (nameOnly || formattingOnly) return;
  for (const line of patchOf(difference).trimEnd().split('\n')) output.line(paintedPatch(run, line));
  output.line();
}

function paintedPatch({ output: { terminal } }: Run, line: string): string {
  const text = plain(line);
  if (line.startsWith('+++') || line.startsWith('---')) return terminal.paint('bold', text);
  if (line.startsWith('+')) return terminal.paint('green', text);
  if (line.startsWith('-')) return terminal.paint('red', text);
  return line.startsWith('@@') ? terminal.paint('cyan', text) : text;
}

/** Prints the hash of the folder; `check`: that it is the one in erp-project.yaml. */
export async function hash(run: Run, options: { dir: string; check?: true | undefined }): Promise<void> {
  const project = await readProject(options.dir);
  const manifestHash = hashOf(project);
  const retrieved = project.origin?.manifestHash ?? null;
  run.output.value({ manifestHash, retrieved }, () => run.output.line(manifestHash));
  if (options.check && manifestHash !== retrieved)
    throw new Failure('CLIENT_HASH', EXIT.validation, 'The files are not those that were retrieved.', {
      hint: retrieved === null ? 'There is no erp-project.yaml that says which these were.' : `They were ${retrieved}.`,
    });
}
