/**
 * `erp metadata delete`: marks components for deletion. Their files and their entries in the manifest go, and the
 * destructive manifest names them; the platform deletes them with the next deployment that allows it.
 */
import { DESTRUCTIVE_PATH, MANIFEST_PATH, membersOf } from '../../lib/metadata/manifest.ts';
import { pathOf } from '../../lib/metadata/paths.ts';
import type { Run } from '../command.ts';
import { usage } from '../failure.ts';
import { counted } from '../output/values.ts';
import { type Project, readProject } from './folder.ts';
import { refuseLoss } from './into-folder.ts';
import { emitDestructive, emitPackage, explicitPackage, type Member, memberKey, parseMembers } from './package.ts';
import { writeTree } from './write.ts';

export interface DeleteOptions {
  dir: string;
  force?: true | undefined;
}

/** Marks the named components for deletion. */
export async function markDeleted(run: Run, texts: readonly string[], options: DeleteOptions): Promise<void> {
  const named = membersOf(parseMembers(texts).types);
  for (const { type, fullName } of named)
    if (fullName.includes('*') || pathOf(type, fullName) === null)
      throw usage(
        `${type} ${fullName} is not the name of one component.`,
        'Name each: CustomField:Invoice__c.Amount__c',
      );
  const project = await readProject(options.dir);
  const goes = (member: Member): boolean => named.some((one) => isPartOf(member, one));
  const remove = [...project.components].filter(([, member]) => goes(member)).map(([path]) => path);
  if (!options.force) await refuseLoss(project, remove);
  const kept = explicitPackage(membersOf(project.package.types).filter((member) => !goes(member)));
  await writeTree(project.root, {
    write: new Map([
      [MANIFEST_PATH, emitPackage(kept)],
      [
        DESTRUCTIVE_PATH,
        emitDestructive(explicitPackage(allDeleted(project, named)).types, project.destructive.alters),
      ],
    ]),
    remove,
  });
  run.output.value({ deleted: named, removed: remove }, () => {
    run.output.line(
      `${counted(named.length, 'component', 'components')} marked for deletion, ${counted(remove.length, 'file', 'files')} removed.`,
    );
    run.output.line('See what goes: erp metadata validate --allow-destructive');
  });
}

/** With an object goes everything that belongs to it. */
const isPartOf = (member: Member, deleted: Member): boolean =>
  memberKey(member) === memberKey(deleted) ||
  (deleted.type === 'CustomObject' && member.fullName.startsWith(`${deleted.fullName}.`));

function allDeleted({ destructive }: Project, named: readonly Member[]): Member[] {
  return [...membersOf(destructive.types), ...named];
}
