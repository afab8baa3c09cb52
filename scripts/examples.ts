/** `npm run examples`: records a request and its answer for every operation, and writes them to contracts/examples. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { stopOwnServer } from '../test/support/database.ts';
import { record } from '../test/support/recording/record.ts';

const folder = new URL('../contracts/examples/', import.meta.url);
try {
  const { files } = await record();
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) await rm(new URL(name, folder));
  for (const [name, examples] of files)
    await writeFile(new URL(`${name}.json`, folder), `${JSON.stringify(examples, null, 2)}\n`);
} finally {
  await stopOwnServer();
}
