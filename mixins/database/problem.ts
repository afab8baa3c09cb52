/** Describes why a process cannot use its database, and what to do about it. */
import { ConfigError } from '../../config/env.ts';
import { messageOf } from '../../lib/errors/thrown.ts';
import { membersOf } from '../../lib/json/objects.ts';
import { isUntrustedCertificate } from '../certificates.ts';
import { sqlState } from './database.ts';
import { isConnectionError, isRefusedLogin, isUnsuitablePooler } from './failures.ts';

/** Source of the address that was used. `expected`: the login that signs in there. */
interface Address {
  readonly variable: string;
  readonly url: string;
  readonly expected?: string;
}

/** Something of the schema is not there: schema, table, function, column. */
const ABSENT: ReadonlySet<string | null> = new Set(['3F000', '42P01', '42883', '42703']);

/** Fails with a ConfigError where there is something to set right, and with every other error as it is. */
export const explained = <T>(work: Promise<T>, address: Address): Promise<T> =>
  work.catch((error) => {
    throw databaseProblem(error, address);
  });

function databaseProblem(error: unknown, address: Address): unknown {
  if (error instanceof ConfigError) return error;
  const sentence = sentenceOf(error, address);
  return sentence === null ? error : new ConfigError(sentence, { cause: error });
}

function sentenceOf(error: unknown, address: Address): string | null {
  const { code, path } = membersOf(error);
  const message = messageOf(error);
  const { variable } = address;
  if (isRefusedLogin(error)) return `The database of ${variable} refuses us: ${message}`;
  if (isUnsuitablePooler(error)) return `${variable} cannot be used: ${message}`;
  if (isUntrustedCertificate(error))
    return `The certificate of the database of ${variable} is not from an authority in its sslrootcert: ${message}`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `The certificate of the database of ${variable} is for another host: ${message}`;
  if (code === 'ENOENT' || code === 'EACCES')
    return `The file ${path ?? ''} that ${variable} names (sslrootcert, sslcert or sslkey) cannot be read.`;
  if (isConnectionError(error)) return `The database of ${variable} cannot be reached: ${message}`;
  if (sqlState(error) === '42501') return `The account of ${variable} lacks a right: ${message}${otherLogin(address)}`;
  if (ABSENT.has(sqlState(error)))
    return `The tables are not up to date (${message}): run \`npm run migrate\` with the DATABASE_URL of the owner.`;
  return null;
}

function otherLogin({ url, expected }: Address): string {
  const user = decodeURIComponent(URL.parse(url)?.username ?? '');
  return expected === undefined || user === expected ? '' : ` (it is ${user}, where ${expected} is expected)`;
}
