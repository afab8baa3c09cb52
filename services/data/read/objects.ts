/** The objects that a user can see, and their descriptions. Source: docs/reference/records.md. */

import type { Handler } from '../../../contracts/operations.ts';
import type { Asker } from '../../../lib/context.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import { requireApi, visibleObject } from '../object-access.ts';
import { assertFresh } from '../tenants.ts';
import type { View } from '../view.ts';
import { describeObject, describeObjects, schemaOfObject } from './describe.ts';
import { notModified, type ReadDeps } from './read.ts';

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

export const listObjects: Handler<'schema.objects.list', ReadDeps> = (deps, request) =>
  fromCurrentView<OperationReply>(deps, request, (view) => ({ body: describeObjects(view.access, request.scopes) }));

export const describe: Handler<'schema.objects.describe', ReadDeps> = (deps, request, call) =>
  fromCurrentView<OperationReply>(deps, request, (view) => {
    const description = describeObject(view.access, visibleObject(view, call.path.objectApiName), request.scopes);
    const etag = `"${description['schemaVersion']}"`;
    if (matchesEtag(call.headers.ifNoneMatch, etag)) return notModified(etag);
    return { headers: { ETag: etag }, body: description };
  });

export const getSchema: Handler<'schema.objects.getSchema', ReadDeps> = (deps, request, call) =>
  fromCurrentView<OperationReply>(deps, request, (view) => {
    const object = visibleObject(view, call.path.objectApiName);
    const etag = `"${describeObject(view.access, object, request.scopes)['schemaVersion']}"`;
    if (matchesEtag(call.headers.ifNoneMatch, etag)) return notModified(etag);
    return { headers: { ETag: etag }, body: schemaOfObject(view.access, object, request.scopes) };
  });
