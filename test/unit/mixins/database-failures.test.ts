import assert from 'node:assert/strict';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { failureOf } from '../../../mixins/database/failures.ts';
import { databaseUnavailable } from '../../../mixins/database/unavailable.ts';
import { platformErrorOf } from '../../../mixins/mutation/errors.ts';

const action = databaseUnavailable as unknown as {
  localAction(next: () => Promise<unknown>): (ctx: unknown) => Promise<unknown>;
};
/** Response of an action that fails with the error. */
const answered = (error: unknown): Promise<unknown> =>
  action
    .localAction(() => Promise.reject(error))({})
    .catch((failure: unknown) => failure);
const withCode = (code: string): Error => Object.assign(new Error(`It failed with ${code}.`), { code });

/** Every SQLSTATE of PostgreSQL 15 to 18 that says something of the server and not of the statement. */
const OF_THE_SERVER = {
  unreachable: ['08000', '08001', '08003', '08004', '08006', '08007', '08P01'],
  stopping: ['57P01', '57P02', '57P03', '57P04', '57P05', '25P03'],
  tooManyConnections: ['53300'],
  refusedLogin: ['28000', '28P01', '3D000'],
  readOnly: ['25006'],
  full: ['53100'],
  outOfMemory: ['53000', '53200', '53400'],
  timedOut: ['57014'],
  contended: ['40001', '40P01', '55P03'],
  damaged: ['58000', '58030', '58P01', '58P02', 'F0000', 'F0001', 'XX001', 'XX002'],
} as const;

/** Connection errors of Node.js and OpenSSL. */
const OF_THE_NETWORK = {
  unreachable: [
    'ECONNREFUSED',
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
    'ENETDOWN',
    'EADDRNOTAVAIL',
    'EMFILE',
  ],
  untrusted: [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'EPROTO',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'CERT_HAS_EXPIRED',
  ],
  pooler: ['ERP_POOL_MODE'],
} as const;

/** The driver's own errors have no code. */
const OF_THE_DRIVER = {
  unreachable: [
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'timeout exceeded when trying to connect',
    'timeout expired',
    'Client was closed and is not queryable',
    'Client has encountered a connection error and is not queryable',
    'Cannot use a pool after calling end on the pool',
  ],
  untrusted: ['The server does not support SSL connections', 'There was an error establishing an SSL connection'],
  refusedLogin: ['SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'],
} as const;

describe('failures of the database', () => {
  const cases = [
    ...Object.entries(OF_THE_SERVER).flatMap(([kind, codes]) => codes.map((code) => [kind, withCode(code)] as const)),
    ...Object.entries(OF_THE_NETWORK).flatMap(([kind, codes]) => codes.map((code) => [kind, withCode(code)] as const)),
    ...Object.entries(OF_THE_DRIVER).flatMap(([kind, all]) => all.map((text) => [kind, new Error(text)] as const)),
  ];
  for (const [kind, error] of cases)
    it(`${(error as { code?: string }).code ?? error.message}: ${kind}, answered with 503`, async () => {
      assert.equal(failureOf(error)?.kind, kind);
      const wrapped = new PlatformError('INTERNAL_ERROR', 'The records could not be read.', { cause: error });
      for (const met of [error, wrapped]) {
        const answer = (await answered(met)) as PlatformError;
        assert.equal(answer.code, 'SERVICE_UNAVAILABLE');
        assert.ok((answer.retryAfterSeconds ?? 0) >= 1);
        assert.doesNotMatch(answer.message, /It failed with/, 'not the words of the database');
      }
      const ofMutation = platformErrorOf(error, undefined);
      assert.equal(ofMutation.code, kind === 'contended' ? 'WRITE_CONTENTION' : 'SERVICE_UNAVAILABLE');
    });

  it('of an address with several hosts are classified by the first', () => {
    const error = new AggregateError([withCode('ECONNREFUSED'), withCode('ENETUNREACH')]);
    assert.equal(failureOf(error)?.kind, 'unreachable');
  });

  for (const code of ['23505', '22P02', '42P01', '42501', '42703', 'P0001', '21000', 'XX000', '0A000', '54001'])
    it(`${code} is a statement error and passes unchanged`, async () => {
      const error = withCode(code);
      assert.equal(failureOf(error), null);
      assert.equal(await answered(error), error);
    });

  it('do not include other errors', async () => {
    for (const error of [new Error('Something else.'), new PlatformError('RECORD_NOT_FOUND', 'No.'), 'text', null])
      assert.equal(await answered(error), error);
  });
});
