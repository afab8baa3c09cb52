/**
 * Hides records that a reader may not know of, and paths that name them. Ids and names that their user has
 * sent are no news to that user. Source: docs/reference/agents.md#approvals.
 */
import type { RecordName } from '../../contracts/data.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import type { Access } from '../../lib/access/types.ts';
import { API_PREFIX } from '../../lib/addresses.ts';
import type { RequestContext } from '../../lib/context.ts';
import { ownEntry } from '../../lib/schema/lookup.ts';
import { recordKey } from '../../lib/schema/record-key.ts';
import { HIDDEN } from './approvals/hide.ts';
import type { AgentDeps } from './deps.ts';

/** True when the reader can see a record, or could before it was deleted. */
export type Sees = (record: RecordName) => boolean;

/** Asks about these records; others are not seen. */
export async function sightOf(
  deps: AgentDeps,
  { tenantId, userId }: RequestContext,
  records: readonly RecordName[],
): Promise<Sees> {
  const asked = records.map(({ objectApiName, id }) => ({ objectApiName, id: id.toLowerCase() }));
  const found = asked.length === 0 ? [] : await deps.seenRecords({ tenantId, userId, records: asked });
  const seen = new Set(found.map(recordKey));
  return ({ objectApiName, id }) => seen.has(recordKey({ objectApiName, id: id.toLowerCase() }));
}

const TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map(
  OPERATIONS.map(({ operationId, path }) => [operationId, segmentsOf(API_PREFIX + path)]),
);

interface CalledPath {
  readonly operationId: string;
  /** As it was received. */
  readonly path: string;
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** The segments of a path, each with the name of its parameter; null: it does not fit the operation. */
function read({ operationId, path }: CalledPath): { readonly name: string | null; readonly text: string }[] | null {
  const template = TEMPLATES.get(operationId);
  const segments = segmentsOf(path);
  if (template?.length !== segments.length) return null;
  return segments.map((text, i) => ({ name: /^\{(\w+)\}$/.exec(template[i] ?? '')?.[1] ?? null, text }));
}

/** The record that a path names; null: none. */
export function recordInPath(called: CalledPath): RecordName | null {
  const segments = read(called);
  const textOf = (name: string): string | undefined => segments?.find((one) => one.name === name)?.text;
  const [objectApiName, id] = [textOf('objectApiName'), textOf('id')];
  return objectApiName === undefined || id === undefined ? null : { objectApiName, id };
}

/** Ids that only the service knows something about which owns the operation. */
const OF_SERVICES = ['value', 'dashboardId', 'connectionId'];

/** The part of a path that a reader may see. */
interface PathSight {
  readonly sees: Sees;
  /** They may know of everything else that it names. */
  readonly reads: boolean;
}

/**
 * The path without names of objects and fields and ids that the reader may not see, or that were not checked whether they
 * may.
 */
export function shownPath(called: CalledPath, { objects }: Access, { sees, reads }: PathSight): string {
  const segments = read(called);
  if (!segments) return HIDDEN;
  const textOf = (name: string): string => segments.find((one) => one.name === name)?.text ?? '';
  const object = ownEntry(objects, textOf('objectApiName'));
  const record = recordInPath(called);
  const shown = new Set<string>();
  if (object) shown.add('objectApiName');
  if (record && object && sees(record)) for (const name of ['id', 'shareId', 'transitionKey']) shown.add(name);
  if (object && ownEntry(object.fields, textOf('externalIdField'))?.read) shown.add('externalIdField');
  if (reads && (!object || shown.has('externalIdField'))) for (const name of OF_SERVICES) shown.add(name);
  return `/${segments.map(({ name, text }) => (name === null || shown.has(name) ? text : HIDDEN)).join('/')}`;
}
