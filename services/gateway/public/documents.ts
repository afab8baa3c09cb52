/** The public documents: made once from the operation rows, the same for everyone, with a strong ETag. */
import { hash } from 'node:crypto';
import type { Config } from '../../../config/env.ts';
import { type Operation, type OperationReply, SCOPES } from '../../../lib/operation.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import { capabilities } from './capabilities.ts';
import { openapi } from './openapi.ts';

type Name = 'openapi' | 'scopes' | 'capabilities';

const HEADERS = { 'Cache-Control': 'public, max-age=300' };

export class PublicDocuments {
  readonly #documents: Record<Name, { body: Buffer; etag: string }>;

  constructor(operations: readonly Operation[], baseUrl: string, config: Config) {
    const scopes = Object.entries(SCOPES).map(([scope, description]) => ({ scope, description }));
    this.#documents = {
      openapi: document(openapi(operations, baseUrl)),
      scopes: document(scopes),
      capabilities: document(capabilities(operations, baseUrl, config.rateLimits)),
    };
  }

  answer(name: Name, ifNoneMatch: string | undefined): OperationReply {
    const { body, etag } = this.#documents[name];
    const headers = { ...HEADERS, ETag: etag };
    return matchesEtag(ifNoneMatch, etag) ? { status: 304, headers, body: null } : { headers, body };
  }
}

function document(content: object): { body: Buffer; etag: string } {
  const body = Buffer.from(JSON.stringify(content));
  return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}
