import { codeOf, messageOf } from '../../lib/errors/thrown.ts';
/**
 * Failures of the database itself, not of a statement: one list for callers, the pool and operators. None of it
 * is a bug of the request, so that all of it is answered with 503. Source: docs/reference/errors.md#database-failures.
 */

export type FailureKind =
  | 'unreachable'
  | 'stopping'
  | 'tooManyConnections'
  | 'refusedLogin'
  | 'untrusted'
  | 'pooler'
  | 'readOnly'
  | 'full'
  | 'outOfMemory'
  | 'timedOut'
  | 'contended'
  | 'damaged';

export interface Failure {
  readonly kind: FailureKind;
  /** The connection is gone, or never was: the fate of its transaction is unknown. */
  readonly lost: boolean;
  /** The operator's remedy, for the log; null when there is none. */
  readonly remedy: string | null;
}

interface Row extends Failure {
  /** SQLSTATEs, or the names of errors of the operating system. */
  readonly codes: RegExp;
  /** Of errors without a code. */
  readonly message?: RegExp;
}

const ROWS: readonly Row[] = [
  {
    kind: 'tooManyConnections',
    lost: true,
    codes: /^53300$/,
    remedy: 'raise max_connections, or lower DATABASE_POOL_SIZE or the number of processes',
  },
  {
    kind: 'full',
    lost: false,
    codes: /^(?:53100|ENOSPC)$/,
    remedy: 'make room on the disk of the database; writes go on by themselves then',
  },
  {
    kind: 'outOfMemory',
    lost: false,
    codes: /^53/,
    remedy: 'give the server more memory, or raise max_locks_per_transaction if it is locks that it lacks',
  },
  {
    kind: 'readOnly',
    lost: false,
    codes: /^25006$/,
    remedy: 'make the address lead to the primary, or promote the server; writes go on by themselves then',
  },
  {
    kind: 'refusedLogin',
    lost: true,
    // 3D000: there is no such database.
    codes: /^(?:28...|3D000)$/,
    message: /^SASL/,
    remedy: 'set the password of the login right, in the address or in the database',
  },
  {
    kind: 'stopping',
    lost: true,
    // Also a session that the server has ended, because it was idle for too long or its database is dropped.
    codes: /^(?:57P0[1-5]|25P03)$/,
    remedy: null,
  },
  { kind: 'timedOut', lost: false, codes: /^57014$/, remedy: null },
  // Statements that waited too long for others and were not retried.
  { kind: 'contended', lost: false, codes: /^(?:40001|40P01|55P03)$/, remedy: null },
  {
    kind: 'damaged',
    lost: false,
    codes: /^(?:58...|F0...|XX00[12])$/,
    remedy: 'look into the log of the server: it cannot read or write its files',
  },
  {
    kind: 'untrusted',
    lost: true,
    codes: /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/,
    message: /does not support SSL connections|error establishing an SSL connection/,
    remedy: 'set the certificate of the database right, or sslmode and sslrootcert of the address',
  },
  {
    kind: 'pooler',
    lost: true,
    codes: /^ERP_POOL_MODE$/,
    remedy: 'set pool_mode = session for this database in the pooler',
  },
  {
    kind: 'unreachable',
    lost: true,
    codes: /^(?:08...|ECONN|EPIPE$|ETIMEDOUT$|ENOTFOUND$|EAI_|EHOST|ENET|EADDRNOTAVAIL$|EMFILE$|ENFILE$)/,
    message:
      /Connection terminated|timeout exceeded when trying to connect|timeout expired|not queryable|Client has encountered a connection error|after calling end on the pool/,
    remedy: 'see that the server runs and that its address leads to it',
  },
];

/** The failure behind an error; null: the statement itself failed, or something unrelated. */
export function failureOf(error: unknown): Failure | null {
  if (!(error instanceof Error)) return null;
  const code = codeOf(error);
  const [first] = error instanceof AggregateError ? error.errors : [];
  // Of an address with several hosts each was tried.
  if (code === undefined && first !== undefined) return failureOf(first);
  return (
    ROWS.find(({ codes, message }) => (code === undefined ? message?.test(error.message) : codes.test(code))) ?? null
  );
}

/** The connection is gone or unusable: the transaction's fate is unknown to us, the pool must drop the client. */
export const isConnectionError = (error: unknown): boolean => failureOf(error)?.lost === true;

/** The server answers neither on its connections nor on a new one. */
export class DatabaseSilent extends Error {
  readonly code = 'ETIMEDOUT';

  constructor() {
    super('the server does not answer');
  }
}

/** A connection could not be made, and nothing refused it. */
export const isUnanswered = (error: unknown): boolean => {
  const code = codeOf(error);
  return code === undefined ? messageOf(error) === 'timeout expired' : /^(?:ETIMEDOUT$|EHOST|ENET)/.test(code);
};

/** The server knows neither the login nor its password, or has no such database: what the operator sets right. */
export const isRefusedLogin = (error: unknown): boolean => failureOf(error)?.kind === 'refusedLogin';

/** The pooler in between does not keep sessions. */
export const isUnsuitablePooler = (error: unknown): boolean => failureOf(error)?.kind === 'pooler';

/** The database answers, and cannot store anything at the moment. */
export const takesNoChanges = (error: unknown): boolean => {
  const kind = failureOf(error)?.kind;
  return kind === 'readOnly' || kind === 'full';
};
