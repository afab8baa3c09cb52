/** Configuration as files: what `erp metadata` retrieves, compares, deploys, cancels and takes back. */

import type { Run } from '../command.ts';
import { act, type Program } from '../command.ts';
import { EXIT, Failure, usage } from '../failure.ts';
import { diff, hash } from '../metadata/compare.ts';
import { markDeleted } from '../metadata/delete.ts';
import { deploy, validate } from '../metadata/deploy.ts';
import { cancel, list, quickDeploy, rollback, status } from '../metadata/deployments.ts';
import { retrieveIntoFolder } from '../metadata/into-folder.ts';
import { FindingsFailure, findingLines } from '../metadata/problems.ts';
import { OTHER_TENANT } from '../metadata/tenant.ts';

/** Shows the files that cannot be sent before the failure itself is reported. */
const withFindings =
  <Args extends unknown[]>(work: (run: Run, ...args: Args) => Promise<void>) =>
  async (run: Run, ...args: Args): Promise<void> => {
    try {
      await work(run, ...args);
    } catch (error) {
      if (error instanceof FindingsFailure && !run.output.json) {
        const { terminal } = run.output;
        const verbose = run.options.verbose === true;
        const lines = findingLines(error.findings, { terminal, severity: 'error', verbose, text: () => undefined });
        for (const line of lines) run.output.note(line);
      }
      throw error;
    }
  };

const repeated = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];

function pageSize(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 200) throw usage('--take is a number from 1 to 200.');
  return value;
}

export function addMetadata(program: Program): void {
  const metadata = program
    .command('metadata')
    .description('retrieve, compare, validate and deploy configuration as files');

  metadata
    .command('types')
    .description('list the types of components, and where their files stand')
    .argument('[type]', 'show the keys of its files')
    .action(act(types));

  metadata
    .command('retrieve')
    .description('write what the platform has into the folder')
    .option('--dir <folder>', 'folder of the project', '.')
    .option('--package <file>', 'retrieve what a package names')
    .option('--type <type:members>', 'add components to the project, such as CustomField:Invoice__c.*', repeated)
    .option('--all', 'retrieve everything')
    .option('--prune', 'remove files that are not among what was retrieved')
    .option('--force', 'overwrite edits that are not in git')
    .option(...OTHER_TENANT)
    .action(act(withFindings(retrieveIntoFolder)));

  metadata
    .command('diff')
    .description('show how the folder differs from the platform')
    .option('--dir <folder>', 'folder of the project', '.')
    .option('--name-only', 'name the components alone')
    .option('--exit-code', 'end with 1 when there are differences')
    .action(act(withFindings(diff)));

  metadata
    .command('hash')
    .description('compute the manifest hash of the folder, without the platform')
    .option('--dir <folder>', 'folder of the project', '.')
    .option('--check', 'fail unless the files are those that were retrieved')
    .action(act(withFindings(hash)));

  metadata
    .command('delete')
    .description('mark components for deletion by the next deployment')
    .argument('<type:members...>', 'such as CustomField:Invoice__c.Note__c')
    .option('--dir <folder>', 'folder of the project', '.')
    .option('--force', 'remove files with edits that are not in git')
    .action(act(withFindings(markDeleted)));

  metadata
    .command('validate')
    .description('show what a deployment would change, and what stands against it')
    .option('--dir <folder>', 'folder of the project', '.')
    .option('--allow-destructive', 'allow what the destructive manifest names')
    .action(act(withFindings(validate)));

  metadata
    .command('deploy')
    .description('deploy the folder: all of it or nothing')
    .option('--dir <folder>', 'folder of the project', '.')
    .option('--allow-destructive', 'allow what the destructive manifest names')
    .option('--check-only', 'record a validation that a quick deploy can use, and apply nothing')
    .option('--expected-plan <hash>', 'deploy this plan and no other')
    .option('--yes', 'do not ask')
    .option(...OTHER_TENANT)
    .action(act(withFindings(deploy)));

  metadata
    .command('status')
    .description('show a deployment, its plan and its outcome')
    .argument('<deploymentId>')
    .option('--dir <folder>', 'folder that takes over what was applied, if it holds these files', '.')
    .action(act(withFindings(status)));

  metadata
    .command('cancel')
    .description('cancel a deployment that has not ended')
    .argument('<deploymentId>')
    .option('--reason <text>', 'why, for the audit trail')
    .action(act(cancel));

  metadata
    .command('quick-deploy')
    .description('apply what a recorded validation has validated')
    .argument('<validationId>')
    .option('--dir <folder>', 'folder that takes over what was applied, if it holds these files', '.')
    .option('--yes', 'do not ask')
    .action(act(quickDeploy));

  metadata
    .command('rollback')
    .description('take a deployment back; what it has deleted comes back with its records')
    .argument('<deploymentId>')
    .option('--check-only', 'find out whether it would succeed, and apply nothing')
    .option('--yes', 'do not ask')
    .action(act(rollback));

  metadata
    .command('list')
    .description('list deployments, newest first')
    .option('--status <status>', 'only those in this state, such as SUCCEEDED')
    .option('--take <count>', 'how many', pageSize, 20)
    .option('--cursor <cursor>', 'go on where a page ended')
    .action(act(list));
}

async function types(run: Run, type: string | undefined): Promise<void> {
  const { output } = run;
  const answer = await (await run.api()).call('metadata.types.list', {});
  const known = answer.body.records;
  if (type === undefined) {
    const columns = [{ title: 'TYPE' }, { title: 'MEMBER' }, { title: 'FILE' }];
    output.result(answer, () =>
      output.table(
        columns,
        known.map(({ type: name, memberFormat, pathPattern }) => [name, memberFormat, pathPattern]),
      ),
    );
    return;
  }
  const found = known.find((one) => one.type === type);
  if (!found)
    throw new Failure('CLIENT_TYPE', EXIT.usage, `There is no type ${type}.`, {
      hint: `There are: ${known.map((one) => one.type).join(', ')}`,
    });
  output.value(found, () => {
    output.pairs([
      ['type', found.type],
      ['member', found.memberFormat],
      ['file', found.pathPattern],
    ]);
    output.line();
    output.table([{ title: 'KEY' }, { title: 'REQUIRED' }, { title: 'MEANING' }], keysOf({ ...found.schema }));
  });
}

/** The keys of a file by its JSON Schema. */
function keysOf(schema: Readonly<Record<string, unknown>>): string[][] {
  const { properties, required } = schema;
  const must = Array.isArray(required) ? required : [];
  return Object.entries(isRecord(properties) ? properties : {}).map(([key, value]) => [
    key,
    must.includes(key) ? 'yes' : '',
    isRecord(value) && typeof value['description'] === 'string' ? value['description'] : '',
  ]);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
