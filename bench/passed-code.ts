/**
 * Prints how many files and functions of a folder each request passes, on a platform of its own in this process:
 * `node bench/passed-code.ts [--folder services/gateway] [--names]`.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { tokenFor } from '../test/support/client.ts';
import { stopOwnServer } from '../test/support/database.ts';
import { type PassedCode, passedCode } from '../test/support/passed-code.ts';
import { startPlatform } from '../test/support/platform.ts';

const { values } = parseArgs({
  options: { folder: { type: 'string', default: 'services/gateway' }, names: { type: 'boolean', default: false } },
});

const platform = await startPlatform({ env: { LOG_LEVEL: 'info' } });
const token = await tokenFor(platform.baseUrl, 'mia');

async function send(method: string, path: string, body?: object, etag?: string): Promise<{ id: string; etag: string }> {
  const answer = await fetch(`${platform.baseUrl}/api/v1/data/Account${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(method === 'GET' ? {} : { 'idempotency-key': randomUUID() }),
      ...(etag === undefined ? {} : { 'if-match': etag }),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return { id: text === '' ? '' : String(JSON.parse(text).id), etag: answer.headers.get('etag') ?? '' };
}

const create = (): ReturnType<typeof send> => send('POST', '', { name: `Passed ${randomUUID()}` });

try {
  let record = await create();
  const passed = new Map<string, PassedCode>();
  const measure = async (name: string, request: () => Promise<unknown>, prepare?: () => Promise<unknown>) =>
    passed.set(name, await passedCode(values.folder, request, prepare));
  await measure('get', () => send('GET', `/${record.id}`));
  await measure('list', () => send('GET', '?take=5'));
  await measure('create', create);
  await measure('update', async () => {
    const name = `Passed ${randomUUID()}`;
    record = { ...record, etag: (await send('PATCH', `/${record.id}`, { name }, record.etag)).etag };
  });
  await measure(
    'delete',
    () => send('DELETE', `/${record.id}`, undefined, record.etag),
    async () => {
      record = await create();
    },
  );
  for (const [name, { files, functions }] of passed) {
    console.log(
      `${name.padEnd(8)} ${String(files.size).padStart(3)} files  ${String(functions).padStart(4)} functions`,
    );
    if (values.names)
      for (const [file, called] of [...files].sort()) console.log(`  ${file} (${called.length}): ${called.join(', ')}`);
  }
} finally {
  await platform.stop();
  await stopOwnServer();
}
