/** The objects that a user can see, and their descriptions. Source: docs/reference/records.md. */

import type { Handler } from '../../../contracts/operations.ts';
import type { Asker } from '../../../lib/context.ts';
import { languageHeaders, type OperationCall, type OperationReply } from '../../../lib/operation.ts';
import { type Labels, labelsFor } from '../../../lib/schema/labels.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import { requireApi, visibleObject } from '../object-access.ts';
import { assertFresh } from '../tenants.ts';
import type { View } from '../view.ts';
import { schemaOfObject } from './body-schemas.ts';
import { describeObject, describeObjects, versionOf } from './describe.ts';
import type { ReadDeps } from './read.ts';

/**
 * Answers from the configuration alone, but never from an outdated one: the versions are read first, which costs one
 * short statement.
 */
export async function fromCurrentView<Answer>(
  deps: ReadDeps,
  request: Asker,
  answer: (view: View) => Answer,
): Promise<Answer> {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const versions = await deps.tenants.versions(request.tenantId);
    assertFresh(view, versions.metadataVersion, versions.accessVersion);
    requireApi(view);
    return answer(view);
  });
}

const labelsOf = ({ snapshot }: View, { headers }: OperationCall): Labels =>
  labelsFor(snapshot, headers.acceptLanguage);

export const listObjects: Handler<'schema.objects.list', ReadDeps> = (deps, request, call) =>
  fromCurrentView<OperationReply>(deps, request, (view) => {
    const labels = labelsOf(view, call);
    return { headers: languageHeaders(labels.language), body: describeObjects(view.access, request.scopes, labels) };
  });

export const describe: Handler<'schema.objects.describe', ReadDeps> = (deps, request, call) =>
  fromCurrentView<OperationReply>(deps, request, (view) => {
    const labels = labelsOf(view, call);
    const object = visibleObject(view, call.path.objectApiName);
    const description = describeObject(view.access, object, request.scopes, labels);
    return unlessKnown(call, labels, description.schemaVersion, description);
  });

export const getSchema: Handler<'schema.objects.getSchema', ReadDeps> = (deps, request, call) =>
  fromCurrentView<OperationReply>(deps, request, (view) => {
    const labels = labelsOf(view, call);
    const object = visibleObject(view, call.path.objectApiName);
    const schema = schemaOfObject(view.access, object, request.scopes, labels);
    return unlessKnown(call, labels, versionOf(schema), schema);
  });

/** 304 where the caller knows the answer, in the same language, already. */
function unlessKnown({ headers }: OperationCall, labels: Labels, version: string, body: object): OperationReply {
  const etag = `"${version}"`;
  const answered = { ETag: etag, ...languageHeaders(labels.language) };
  return matchesEtag(headers.ifNoneMatch, etag)
    ? { status: 304, headers: answered, body: null }
    : { headers: answered, body };
}
