/** `types`: the objects of the tenant as TypeScript, for programs that work with them. */
import { readFile } from 'node:fs/promises';
import writeFileAtomic from 'write-file-atomic';
import type { OperationOutput } from '../../contracts/operations.ts';
import { act, type Program, type Run } from '../command.ts';
import { EXIT, Failure, usage } from '../failure.ts';
import type { Api } from '../http/api.ts';
import { moduleOf, type ObjectSchemas } from '../types/module.ts';
import type { JsonSchema } from '../types/type-of.ts';

/** Characters of a type's name. */
const API_NAME = /^[A-Za-z]\w{0,79}$/;

export function addTypes(program: Program): void {
  program
    .command('types')
    .description('write TypeScript types of the objects of the tenant, as you may read and change them')
    .option('--objects <a,b>', 'only these objects')
    .option('--out <file>', 'write them to this file instead of standard output')
    .option('--check', 'write nothing; exit code 1 when the file of --out is not up to date')
    .action(
      act(async (run, { objects, out, check }) => {
        if (check && out === undefined) throw usage('--check needs the file: --out <file>.');
        const text = moduleOf(await schemasOf(await run.api(), objects));
        if (out === undefined) print(run, text);
        else if (check) await compare(out, text);
        else await write(run, out, text);
      }),
    );
}

function print({ output }: Run, text: string): void {
  output.value(text, () => output.line(text.trimEnd()));
}

async function compare(file: string, text: string): Promise<void> {
  if ((await contentOf(file)) === text) return;
  throw new Failure('CLIENT_OUT_OF_DATE', EXIT.error, `${file} is not up to date.`, {
    hint: `Write it again: the same command without --check.`,
  });
}

async function write({ output }: Run, file: string, text: string): Promise<void> {
  const changed = (await contentOf(file)) !== text;
  if (changed)
    await writeFileAtomic(file, text).catch((error: Error) => {
      throw usage(`${file} cannot be written: ${error.message}`);
    });
  output.value({ file, changed }, () => output.note(changed ? `${file} is written.` : `${file} is up to date.`));
}

/** Null: there is none that can be read. */
const contentOf = (file: string): Promise<string | null> => readFile(file, 'utf8').catch(() => null);

/** One object after the other: what costs is the limit of the connection, not the time. */
async function schemasOf(api: Api, chosen: string | undefined): Promise<ObjectSchemas[]> {
  const names = chosen?.split(',').map((name) => name.trim());
  const { body } = await api.call('schema.objects.list', {});
  const known = new Map(body.records.map(({ apiName, label }) => [apiName, label]));
  const missing = names?.filter((name) => !known.has(name)) ?? [];
  if (missing.length > 0)
    throw usage(
      `There is no object ${missing.join(', ')}, or you may not read it.`,
      'Those there are: erp objects list.',
    );
  const found: ObjectSchemas[] = [];
  for (const apiName of new Set(names ?? known.keys())) {
    if (!API_NAME.test(apiName)) throw new Failure('CLIENT_ANSWER', EXIT.error, `${apiName} is no name of an object.`);
    const schema = await api.call('schema.objects.getSchema', { path: { objectApiName: apiName } });
    found.push({ apiName, label: known.get(apiName) ?? apiName, ...bodiesOf(schema.body) });
  }
  return found;
}

function bodiesOf({ description, $defs: { create, update, read } }: OperationOutput<'schema.objects.getSchema'>) {
  const written = (schema: typeof create): JsonSchema | false => schema && asSchema(schema);
  return { description, create: written(create), update: written(update), read: asSchema(read) };
}

/** The keywords by which a type is made; a test holds what the platform answers against them. */
const asSchema = (schema: object): JsonSchema => schema;
