/**
 * By what a grant recognises the client that it was given to. Configuration changes; a yes that a person said to one
 * application is none to whatever bears its name later. Both who check grants ask here: auth, and data while auth is
 * away.
 */
import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { ExternalClientMeta } from '../schema/snapshot.ts';

/** A client as its configuration declares it now; null: it is part of the platform. */
export interface DeclaredClient {
  readonly meta: ExternalClientMeta | null;
}

/** A live grant as it is stored. */
export interface StoredGrant {
  readonly userId: string;
  readonly clientId: string;
  /** The mark of how its client proved itself. */
  readonly authentication: string | null;
}

export interface ClientMarks {
  /** Of everything that decides who gets the tokens: when it differs, the person is asked again. */
  declaration: string;
  /** Of how the client proves itself, and whether it is an agent: when it differs, the grant has ended. */
  authentication: string;
}

const BUILT_IN: ClientMarks = { declaration: 'built in', authentication: 'built in' };

const known = new WeakMap<ExternalClientMeta, ClientMarks>();

/** The marks of a client as its configuration declares it now. */
export function marksOf({ meta }: DeclaredClient): ClientMarks {
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

/** True while a grant with this authentication mark is valid. */
export const isSameAuthentication = (mark: string | null | undefined, client: DeclaredClient): boolean =>
  mark === marksOf(client).authentication;

/** True when a stored grant belongs to this user and client and is valid for the client as declared now. */
export const isGrantOf = (
  stored: StoredGrant | undefined,
  { userId, clientId }: { readonly userId: string; readonly clientId: string },
  client: DeclaredClient,
): boolean =>
  stored?.userId === userId && stored.clientId === clientId && isSameAuthentication(stored.authentication, client);

const sorted = (texts: readonly string[]): string[] => [...texts].sort();

/** Of the canonical form (RFC 8785): in which order members stand says nothing. */
const digest = (value: unknown): string => hash('sha256', canonicalize(value) ?? '', 'base64url');
