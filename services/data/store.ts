/** Reading records: the one place where a compiled query meets the database and rows become the bytes of an answer. */

import type { Directory } from '../../lib/access/directory.ts';
import type { Principal } from '../../lib/access/types.ts';
import { type CompiledList, type Page, readPage, readRecord, type SingleRecord } from '../../lib/query/sql.ts';
import type { CompiledQuery } from '../../lib/query/types.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { table } from './sql.ts';
import type { Versions } from './view.ts';

/** Scalar sub-selects of the versions, for the select list of any statement. */
const versionsSql = (schema: string): string =>
  `(SELECT metadata_version FROM ${schema}._state), (SELECT access_version FROM ${schema}._state)`;

export async function readVersions(tx: Tx): Promise<Versions> {
  const { rows } = await tx.arrays({ text: `SELECT ${versionsSql(tx.schema)}` });
  return { metadataVersion: rows[0]![0] as number, accessVersion: rows[0]![1] as number };
}

/** The user behind a request as the tenant's record says, with the versions that go with it. */
export async function findPrincipal(
  tx: Tx,
  userId: string,
): Promise<{ versions: Versions; principal: Principal | null }> {
  const { rows } = await tx.arrays({
    name: `principal ${tx.schema}`,
    text: `SELECT s.metadata_version, s.access_version, u."username", u."displayName", u."active", u."locale", u."timezone",
        u."profileApiName", u."roleApiName", u."permissionSetApiNames"
      FROM ${tx.schema}._state s LEFT JOIN ${table(tx.schema, 'User')} u ON u."id" = $1`,
    values: [userId],
  });
  const row = rows[0]!;
  const versions = { metadataVersion: row[0] as number, accessVersion: row[1] as number };
  if (row[2] === null) return { versions, principal: null };
  return {
    versions,
    principal: {
      userId,
      username: row[2] as string,
      displayName: (row[3] as string | null) ?? (row[2] as string),
      active: row[4] !== false,
      locale: row[5] as string | null,
      timezone: (row[6] as string | null) ?? '',
      profileApiName: row[7] as string,
      roleApiName: row[8] as string | null,
      permissionSetApiNames: (row[9] as string[] | null) ?? [],
    },
  };
}

/** All users as sharing sees them, with the versions that go with them. */
export async function readDirectory(tx: Tx): Promise<{ versions: Versions; directory: Directory }> {
  const { rows } = await tx.arrays({
    text: `SELECT s.metadata_version, s.access_version, u."id"::text, u."username", u."roleApiName"
      FROM ${tx.schema}._state s LEFT JOIN ${table(tx.schema, 'User')} u ON true`,
  });
  const [first] = rows as [unknown[]];
  return {
    versions: { metadataVersion: first[0] as number, accessVersion: first[1] as number },
    directory: {
      users: rows
        .filter((row) => row[2] !== null)
        .map((row) => ({
          userId: row[2] as string,
          username: row[3] as string,
          roleApiName: row[4] as string | null,
        })),
    },
  };
}

/**
 * Runs the statement of a page and answers the bytes `{"records":[…],"total":…,"nextCursor":…}`. The records never
 * become JavaScript values. `cursorOf` sees what came back beside them and makes the cursor of the next page.
 */
export async function fetchPage(
  tx: Tx,
  compiled: CompiledList,
  cursorOf: (page: Page) => string | null,
): Promise<Buffer> {
  const { writer, found, rest } = await tx.page(compiled, '{"records":[');
  const page = readPage(compiled, found, rest);
  const cursor = cursorOf(page);
  const total = page.total === null ? '' : `,"total":${page.total}`;
  writer.append(`]${total},"nextCursor":${cursor === null ? 'null' : `"${cursor}"`}}`);
  return writer.finish();
}

/** Runs the statement of one record; its JSON as bytes, null when there is none the user can see. */
export async function fetchRecord(
  tx: Tx,
  compiled: CompiledQuery,
): Promise<Omit<SingleRecord, 'record'> & { record: Buffer | null }> {
  const { rows } = await tx.arrays(compiled);
  const read = readRecord(rows[0]!);
  return { ...read, record: read.record === null ? null : Buffer.from(read.record) };
}
