/**
 * Ids in the order in which the database makes them: UUIDv7 (RFC 9562 section 5.7) whose time is that of the database at
 * the moment when the row is made, to a quarter of a microsecond. Who has seen a change commit and makes another gets a
 * later id, whichever process asks for it; ids that processes make agree to some milliseconds only.
 */
import { uuidv7 } from '../../lib/values/ids.ts';

/** The rest of such an id: text for the parameter of `timeOrderedIdSql`. */
export const randomRest = (): string => uuidv7().slice(REST_AT);

const REST_AT = 'tttttttt-tttt-7fff-'.length;

/** SQL of a new id for each row. `rest`: SQL of a text; by default the database makes it, which takes longer. */
export const timeOrderedIdSql = (rest = `substr(gen_random_uuid()::text, ${REST_AT + 1})`): string =>
  `(overlay(lpad(to_hex((date_part('epoch', clock_timestamp()) * ${1_000 * 4_096})::bigint), 15, '0')
    PLACING '7' FROM 13 FOR 0) || ${rest})::uuid`;
