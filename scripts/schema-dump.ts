/** `npm run schema:dump`: writes the shape of the database, as the migrations make it, to test/schema. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stopOwnServer } from '../test/support/database.ts';
import { schemaFiles } from '../test/support/schema-dump.ts';

const folder = join(import.meta.dirname, '..', 'test', 'schema');
try {
  const files = await schemaFiles();
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) if (!files.has(name)) await rm(join(folder, name));
  for (const [name, text] of files) await writeFile(join(folder, name), text);
} finally {
  await stopOwnServer();
}
