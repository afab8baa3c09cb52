/**
 * The PostgreSQL that tests run on: that of the platform, unless TEST_POSTGRESQL names another one, by the number of a
 * version that Debian's packages have installed (`15`), or by the folder of its `initdb` and `postgres`.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Folder of the programs of Debian's package of a version. */
export const debianBinaries = (version: number | string): string => `/usr/lib/postgresql/${version}/bin`;

export const hasBinaries = (folder: string): boolean =>
  ['initdb', 'postgres'].every((name) => existsSync(join(folder, name)));

/** Folder of the programs; undefined: those of the platform. */
export function testBinaries(): string | undefined {
  const wanted = process.env['TEST_POSTGRESQL'];
  if (!wanted) return;
  const folder = /^\d+$/.test(wanted) ? debianBinaries(wanted) : wanted;
  if (!hasBinaries(folder)) throw new Error(`TEST_POSTGRESQL=${wanted}: ${folder} holds no initdb and postgres.`);
  return folder;
}
