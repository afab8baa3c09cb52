/** Shared helpers for tests of the MCP endpoint. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { MCP_SCOPES } from '../../contracts/mcp-offers.ts';
import { signIn, type Tokens } from '../../scripts/sign-in.ts';
import { type Api, demoPassword } from './client.ts';

export const ONE_FIELD = { version: 1, types: [{ name: 'CustomField', members: ['Invoice__c.Amount__c'] }] };

/** Signs a user of the demo in for the endpoint. */
export const assistantTokens = (baseUrl: string, user: string, scope = MCP_SCOPES.join(' ')): Promise<Tokens> =>
  signIn({
    baseUrl,
    user: `${user}@${user === 'eve' ? 'acme' : 'demo'}.example`,
    password: demoPassword(),
    scope,
    resource: `${baseUrl}/mcp`,
  });

/** Ids of a deployment (a check of nothing), a file and a job of the user. */
export async function thingsToRead(ada: Api): Promise<{ deploymentId: string; fileId: string; jobId: string }> {
  const bytes = 'A note.';
  const answers = [
    await ada.post('/metadata/deploy', { files: {}, package: { version: 1, types: [] }, checkOnly: true }),
    await ada.send('POST', '/files', bytes, {
      headers: {
        'content-type': 'text/plain',
        'x-file-name': 'note.txt',
        'content-digest': `sha-256=:${hash('sha256', bytes, 'base64')}:`,
      },
    }),
    await ada.post('/bulk/jobs', { operation: 'create', objectApiName: 'Account', format: 'csv' }),
  ];
  for (const { status, text } of answers) assert.ok(status === 201 || status === 202, text);
  const [{ deploymentId }, { fileId }, { jobId }] = answers.map(({ body }) => body);
  return { deploymentId, fileId, jobId };
}

/** Valid arguments of every tool. */
export async function toolArguments(
  ada: Api,
  { deploymentId, fileId, jobId }: { deploymentId: string; fileId: string; jobId: string },
): Promise<Record<string, object>> {
  const { body } = await ada.post('/metadata/retrieve', { package: ONE_FIELD });
  return {
    metadata_retrieve: { package: ONE_FIELD },
    metadata_validate: { files: body.files, package: body.package, baseMetadataVersion: body.metadataVersion },
    metadata_deployment_get: { deploymentId },
    files_list: { take: 1 },
    files_get: { fileId },
    bulk_jobs_list: { state: 'OPEN' },
    bulk_jobs_get: { jobId },
    docs_search: { query: 'limits of requests' },
    docs_get: { path: 'guides/first-request.md' },
  };
}
