/** `data history`: changes with the labels of fields and the names of people and records. */
import type { OperationOutput } from '../../contracts/operations.ts';
import type { Run } from '../command.ts';
import type { Api } from '../http/api.ts';
import { valueText } from '../output/values.ts';
import { namesOf } from './names.ts';
import { describe, fieldOf } from './objects.ts';

type Page = OperationOutput<'data.history.list'>;

export async function showHistory({ output }: Run, api: Api, objectApiName: string, page: Page): Promise<void> {
  const description = await describe(api, objectApiName);
  const changes = page.records.flatMap((entry) => entry.changes);
  const ids = new Map<string, Set<string>>([
    ['User', new Set(page.records.flatMap(({ actor }) => actor.userId ?? []))],
  ]);
  for (const { field, from, to } of changes)
    for (const object of fieldOf(description, field)?.referenceTo ?? []) {
      const wanted = ids.get(object) ?? new Set();
      for (const value of [from, to]) if (typeof value === 'string') wanted.add(value);
      ids.set(object, wanted);
    }
  const names = new Map<string, string>();
  for (const [object, wanted] of ids)
    if (wanted.size > 0) for (const [id, name] of await namesOf(api, object, wanted)) names.set(id, name);
  const named = (value: unknown, reference: boolean): string => {
    const text = valueText(value);
    return (reference && names.get(text)) || text;
  };
  const rows = page.records.flatMap(({ at, operation, actor, changes: changed, transition }) => {
    const who = actor.userId === null ? 'the platform' : named(actor.userId, true);
    const head = [at, transition ? transition.key : operation, who];
    if (!changed.length) return [[...head, '', '', '']];
    return changed.map(({ field, from, to }) => {
      const known = fieldOf(description, field);
      const reference = (known?.referenceTo.length ?? 0) > 0;
      return [...head, known?.label ?? field, named(from, reference), named(to, reference)];
    });
  });
  output.table(
    ['When', 'What', 'Who', 'Field', 'From', 'To'].map((title) => ({ title })),
    rows,
  );
  if (page.nextCursor) output.note(`There are more: --cursor ${page.nextCursor}`);
}
