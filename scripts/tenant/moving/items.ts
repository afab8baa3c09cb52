/** Parts of a tenant in an export, in order. Source: docs/reference/moving-tenants.md. */
import type { RateLimitOverrides, TenantInfo } from '../../../lib/schema/snapshot.ts';

export const FORMAT = 'erp-tenant';
/** Raised when a version of the platform from before could not read what is written now. */
export const FORMAT_VERSION = 1;

/** A counter of an autoNumber field. */
export interface Counter {
  readonly object: string;
  readonly field: string;
  readonly value: number;
  /** The value was given to a record. */
  readonly given: boolean;
}

/** Needed to read everything else, so it comes first. */
export interface Head {
  readonly format: typeof FORMAT;
  readonly formatVersion: number;
  readonly exportedAt: string;
  readonly tenantSchemaVersion: number;
  readonly tenant: TenantInfo & { readonly operatorLimits: RateLimitOverrides };
  readonly metadataVersion: number;
  /** End of the audit trail's chain, as `npm run audit -- verify` prints it. */
  readonly audit: { readonly position: number; readonly hash: string };
  readonly domains: readonly string[];
  readonly counters: readonly Counter[];
  /** The columns of each part. */
  readonly columns: Readonly<Record<string, readonly string[]>>;
}

/** Rows of a part: one JSON object each, as PostgreSQL writes and reads them. */
export interface Rows {
  readonly kind: 'rows';
  readonly part: string;
  readonly lines: readonly string[];
}

/** A piece of the content of files: the pieces of one follow each other. */
export interface ContentPiece {
  readonly kind: 'content';
  readonly sha256: string;
  readonly bytes: Buffer;
}

export type Item =
  | ContentPiece
  | { readonly kind: 'head'; readonly head: Head }
  | { readonly kind: 'file'; readonly path: string; readonly text: string }
  | Rows;

/** Takes one item after the other; the next is made when the promise is fulfilled. */
export type Sink = (item: Item) => Promise<void>;

/** Users: their ids, before anything that names them. */
export const USERS = 'users';
/** Users whose new address is not confirmed, with the one that is. */
export const ADDRESSES = 'addresses';
/** Stored data of the configuration's components besides their files. */
export const COMPONENTS = 'components';
/** Of the records of an object. */
export const recordsOf = (object: string): string => `records/${object}`;
export const objectOf = (part: string): string | null => /^records\/(.+)$/.exec(part)?.[1] ?? null;

/** Says what cannot be done, to the operator. */
export class MovingRefused extends Error {}
