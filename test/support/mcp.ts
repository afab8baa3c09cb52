/** Shared helpers for tests of the MCP endpoint. */
import assert from 'node:assert/strict';
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

/** A deployment to look at: a check of nothing. */
export async function aDeployment(ada: Api): Promise<string> {
  const validation = await ada.post('/metadata/deploy', {
    files: {},
    package: { version: 1, types: [] },
    checkOnly: true,
  });
  assert.equal(validation.status, 202, validation.text);
  return String(validation.body.deploymentId);
}

/** Valid arguments of every tool. */
export async function toolArguments(ada: Api, deploymentId: string): Promise<Record<string, object>> {
  const { body } = await ada.post('/metadata/retrieve', { package: ONE_FIELD });
  return {
    metadata_retrieve: { package: ONE_FIELD },
    metadata_validate: { files: body.files, package: body.package, baseMetadataVersion: body.metadataVersion },
    metadata_deployment_get: { deploymentId },
    docs_search: { query: 'limits of requests' },
    docs_get: { path: 'guides/first-request.md' },
  };
}
