/** Files and their contents. Source: docs/reference/files.md. */
import type { Handler } from '../../contracts/operations.ts';
import { askerOf } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { listPage } from '../../lib/query/list-page.ts';
import { parseListQuery } from '../../lib/query/parse.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { sealFor } from '../../lib/values/sealed.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { earlierReply } from '../../mixins/mutation/earlier.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import { etagOf, requireVersion } from '../../mixins/mutation/version.ts';
import {
  attachedTo,
  fileNotFound,
  madeFile,
  namedRecord,
  presentFile,
  recordInQuery,
  recordsOf,
  refuseDeniedObject,
  requireRecord,
  visibleFile,
} from './access.ts';
import { headOf } from './bytes.ts';
import { contentTypeOf } from './content-type.ts';
import type { FilesDeps } from './deps.ts';
import {
  deleteFileSql,
  detachSql,
  type FileRow,
  fileSql,
  filesSql,
  type PartRow,
  partsSql,
  updateFileSql,
} from './files.sql.ts';
import { change, emitFile, withHeaders } from './mutation.ts';
import { attachment, nameInHeader } from './names.ts';
import { attach, forgetBlob, makeFile, newBlob, refuseOverflow } from './store.ts';

export const createFile: Handler<'files.items.create', FilesDeps> = async (deps, request, given) => {
  const { tenantId } = request;
  const { contentType: declared, received, bytes } = given.body;
  const name = nameInHeader(given.headers.fileName ?? '');
  const target = recordInQuery(given.query);
  const call = withHeaders(given, name, declared);
  if (received && 'failed' in received) {
    await forgetBlob(deps, tenantId, received);
    return { status: 204, body: null };
  }
  if (!received) {
    const earlier = await earlierReply(deps, request, call);
    if (earlier) return earlier;
    if (target) await requireRecord(deps, request, target);
    await deps.database.shared('files', tenantId, (tx) => refuseOverflow(tx, tenantId, bytes ?? 0));
    return { body: null, receive: { key: await newBlob(deps, tenantId), maxBytes: LIMITS.file_body_max_bytes } };
  }
  if (target) await requireRecord(deps, request, target);
  const contentType = await contentTypeOf(declared, await headOf(deps.blobs, [received]));
  const content = { sha256: received.sha256, bytes: received.bytes, from: { key: received.key } };
  return change(deps, request, call, async (unit) =>
    created(unit, await makeFile(deps, unit, { name, contentType, content, attachTo: target }), target),
  );
};

/** The reply of a mutation that has made a file. Writes its audit entry, and its event unless the file waits for a scan. */
export function created(unit: Unit, row: FileRow, target: FileRow['records'][number] | null): OperationReply {
  const { fileId } = row;
  unit.audit({
    recordId: fileId,
    kind: 'create',
    changes: {
      name: { from: null, to: row.name },
      sha256: { from: null, to: row.sha256 },
      ...(target ? { attachedTo: { from: null, to: target } } : {}),
    },
  });
  if (row.state !== 'scanning') emitFile(unit, row.state, row);
  return madeFile(row, target ? [attachedTo(row, target)] : []);
}

export const getFile: Handler<'files.items.get', FilesDeps> = async (deps, request, { path }) => {
  const { row, records } = await visibleFile(deps, request, path.fileId);
  return { headers: { ETag: etagOf(row) }, body: presentFile(row, records) };
};

export const listFiles: Handler<'files.items.list', FilesDeps> = async (deps, request, { query }) => {
  const { tenantId, userId } = request;
  const target = recordInQuery(query);
  if (target) refuseDeniedObject(request, target.objectApiName);
  const { objectApiName: _object, recordId: _record, ...paging } = query;
  const of = target ? { ...target, inFields: await deps.ofRecord({ asker: askerOf(request), ...target }) } : { userId };
  return listPage(
    { name: 'files.items', parameters: { target } },
    parseListQuery(paging, 'query'),
    sealFor(request, deps.sealingKeys, platformTime()),
    {
      rows: ([before = null], take) =>
        deps.database.shared('files', tenantId, (tx) => tx.all<FileRow>(filesSql(tenantId, { of, before, take }))),
      keys: ({ fileId }) => [fileId],
      present: async (page) => {
        const records = await recordsOf(deps, request, page);
        return page.map((row) => presentFile(row, records.get(row.fileId) ?? []));
      },
    },
  );
};

export const getContent: Handler<'files.content.get', FilesDeps> = async (deps, request, { path, query }) => {
  const { tenantId } = request;
  const { row } = await visibleFile(deps, request, path.fileId);
  if (row.state !== 'ready')
    throw new PlatformError(
      'FILE_QUARANTINED',
      row.state === 'scanning'
        ? 'The file is being scanned. Try again in a moment.'
        : 'The virus scanner rejected the file.',
      { details: { state: row.state } },
    );
  const parts = await deps.database.shared('files', tenantId, (tx) =>
    tx.all<PartRow>(partsSql(tenantId, { sha256: row.sha256 })),
  );
  const disposition = attachment(row.name);
  const { contentType, sha256 } = row;
  const [only, ...others] = parts;
  const download = { contentType, disposition, validSeconds: LIMITS.file_url_seconds };
  const url = query.redirect && only && others.length === 0 ? await deps.blobs.signedUrl?.(only.key, download) : null;
  return url
    ? { status: 302, headers: { Location: url }, body: null }
    : {
        body: null,
        file: { parts, sha256, contentType },
        headers: { 'Content-Disposition': disposition, 'Content-Security-Policy': "sandbox; default-src 'none'" },
      };
};

export const updateFile: Handler<'files.items.update', FilesDeps> = async (deps, request, call) => {
  const { tenantId } = request;
  const { name, description } = call.body;
  const [attachTo, detachFrom] = [namedRecord(call.body.attachTo), namedRecord(call.body.detachFrom)];
  const { records, owns, edits } = await visibleFile(deps, request, call.path.fileId);
  if ((name !== undefined || description !== undefined) && !edits) throw accessDenied();
  if (attachTo) await requireRecord(deps, request, attachTo);
  // An owner takes the file back from records that they cannot read any more.
  if (detachFrom && !owns) await requireRecord(deps, request, detachFrom);
  return change(deps, request, call, async (unit) => {
    const { tx } = unit;
    const before = await lockedFile(unit, call.path.fileId, call.headers.ifMatch);
    const { fileId } = before;
    const has = (target: FileRow['records'][number]): boolean => before.records.some((one) => isSame(one, target));
    const after = {
      name: name ?? before.name,
      description: description === undefined ? before.description : description,
    };
    const detached = detachFrom && has(detachFrom) ? detachFrom : null;
    const attached = attachTo && !has(attachTo) ? attachTo : null;
    const unchanged = after.name === before.name && after.description === before.description && !detached && !attached;
    if (detached) await tx.query(detachSql(tenantId, fileId, detached));
    if (attached) await attach(tx, tenantId, fileId, attached);
    if (!unchanged) {
      await tx.query(updateFileSql(tenantId, fileId, after));
      const changes = Object.entries({
        name: { from: before.name, to: after.name },
        description: { from: before.description, to: after.description },
        attachedTo: { from: detached, to: attached },
      }).filter(([, { from, to }]) => from !== to);
      unit.audit({ recordId: fileId, kind: 'update', changes: Object.fromEntries(changes) });
    }
    const row = await tx.one<FileRow>(fileSql(tenantId, fileId));
    const shown = records.filter(({ field, ...one }) => field !== null || !detached || !isSame(one, detached));
    return {
      headers: { ETag: etagOf(row) },
      body: presentFile(row, attached ? [...shown, attachedTo(row, attached)] : shown),
    };
  });
};

export const deleteFile: Handler<'files.items.delete', FilesDeps> = async (deps, request, call) => {
  const { tenantId } = request;
  const { records, owns } = await visibleFile(deps, request, call.path.fileId);
  if (!owns) throw accessDenied();
  return change(deps, request, call, async (unit) => {
    // The lock waits for writes that are giving the file to a record, and keeps out new ones.
    const row = await lockedFile(unit, call.path.fileId, call.headers.ifMatch);
    const { fileId } = row;
    const inField = await deps.referenced({ tenantId, files: [{ fileId, records: [] }] });
    if (inField.length > 0) {
      const fields = records.filter(({ field }) => field !== null);
      const dependents = [...Map.groupBy(fields, ({ objectApiName }) => objectApiName)].map(
        ([objectApiName, list]) => ({
          objectApiName,
          count: list.length,
        }),
      );
      throw new PlatformError('DELETE_RESTRICTED', 'Fields of records refer to the file; change them first.', {
        details: { dependents },
      });
    }
    await unit.tx.query(deleteFileSql(tenantId, fileId));
    unit.audit({ recordId: fileId, kind: 'delete', changes: { name: { from: row.name, to: null } } });
    emitFile(unit, 'deleted', row);
    return { body: { fileId, deleted: true, deletedAt: formatTimestamp(platformTime()) } };
  });
};

async function lockedFile({ tx, request }: Unit, fileId: string, ifMatch: string): Promise<FileRow> {
  const row = await tx.first<FileRow>(fileSql(request.tenantId, fileId, true));
  if (!row) throw fileNotFound();
  requireVersion(row, ifMatch, 'file');
  return row;
}

const isSame = (one: FileRow['records'][number], other: FileRow['records'][number]): boolean =>
  one.objectApiName === other.objectApiName && one.recordId === other.recordId;

const accessDenied = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'You may read the file, but not change it.');
