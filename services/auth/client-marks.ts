/**
 * By what a grant recognises the client that it was given to. Configuration changes; a yes that a person said to one
 * application is none to whatever bears its name later.
 */
import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { ExternalClientMeta } from '../../lib/schema/snapshot.ts';
import type { KnownClient } from './clients.ts';

export interface ClientMarks {
  /** Of everything that decides who gets the tokens: when it differs, the person is asked again. */
  declaration: string;
  /** Of how the client proves itself, and whether it is an agent: when it differs, the grant has ended. */
  authentication: string;
}

const BUILT_IN: ClientMarks = { declaration: 'built in', authentication: 'built in' };

const known = new WeakMap<ExternalClientMeta, ClientMarks>();

/** The marks of a client as its configuration declares it now. */
export function marksOf({ meta }: KnownClient): ClientMarks {
  // Applications of the platform are part of its code.
  if (meta === null) return BUILT_IN;
  const before = known.get(meta);
  if (before) return before;
  const { confidential, agent, integrationUser } = meta;
  const keys = (meta.jwks?.keys ?? []).map(digest);
  const authentication = digest([confidential, agent, sorted(keys)]);
  const addresses = [meta.redirectUris, meta.origins, meta.grantTypes].map(sorted);
  const marks = { authentication, declaration: digest([authentication, integrationUser, addresses]) };
  known.set(meta, marks);
  return marks;
}

/** Whether a grant with this mark of authentication still counts; one of an earlier version has none, and does. */
export const isSameAuthentication = (mark: string | null | undefined, client: KnownClient): boolean =>
  mark === null || mark === undefined || mark === marksOf(client).authentication;

const sorted = (texts: readonly string[]): string[] => [...texts].sort();

/** Of the canonical form (RFC 8785): in which order members stand says nothing. */
const digest = (value: unknown): string => hash('sha256', canonicalize(value) ?? '', 'base64url');
