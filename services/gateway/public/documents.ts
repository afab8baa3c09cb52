/** The public documents: made once from the operation rows, the same for everyone, with a strong ETag. */
import type { Config } from '../../../config/env.ts';
import { type Operation, type OperationReply, SCOPES } from '../../../lib/operation.ts';
import { strongEtag } from '../../../lib/values/etags.ts';
import { precompress } from '../edge/reply.ts';
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

  /** Whole: whether the caller has it already is found out as it is sent. */
  answer(name: Name): OperationReply {
    const { body, etag } = this.#documents[name];
    return { headers: { ...HEADERS, ETag: etag }, body };
  }
}

function document(content: object): { body: Buffer; etag: string } {
  const body = Buffer.from(JSON.stringify(content));
  precompress(body);
  return { body, etag: strongEtag(body) };
}
