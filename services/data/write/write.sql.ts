/**
 * Values of a write for the placeholders of its statements. They stand outside of the functions that put a text together,
 * since a text that is kept must not keep the write that it was made for.
 */
import type { RequestContext } from '../../../lib/context.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { randomRest } from '../../../mixins/database/time-ordered-id.ts';
import type { IdempotencyKey } from '../../../mixins/mutation/key.ts';
import type { FieldValue, Write } from './write.ts';

export const idOf = ({ id }: Write): string => id;
export const userOf = ({ unit }: Write): string => unit.request.userId;
export const requestOf = ({ unit }: Write): RequestContext => unit.request;
export const keyOf = ({ unit }: Write): IdempotencyKey => unit.key;
export const keyTextOf = ({ unit }: Write): string => unit.key.key;
export const transactionOf = ({ unit }: Write): string => unit.transactionId;
export const ifMatchOf = ({ ifMatch }: Write): readonly string[] => ifMatch;

export const itemAt =
  (index: number) =>
  ({ given }: Write): FieldValue | undefined =>
    given[index];
export const valueAt =
  (index: number) =>
  ({ given }: Write): unknown =>
    given[index]?.value;

/** New for each write. */
export const newId = (): string => uuidv7();
export const newRest = (): string => randomRest();
