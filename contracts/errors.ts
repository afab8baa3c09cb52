/** Violations of a request, as error answers and dry runs show them. */
import { Type } from 'typebox';
import { CATALOGUE, VIOLATION_CODES } from '../lib/errors/catalogue.ts';
import { nullable } from '../lib/operation.ts';

export const ViolationSchema = Type.Object(
  {
    pointer: Type.String({
      description: 'JSON Pointer into the body, or query:<name>, header:<name>, path:<name>.',
    }),
    field: nullable(Type.String({ description: 'apiName of the field.' })),
    code: Type.Enum([...new Set<string>([...VIOLATION_CODES, ...Object.keys(CATALOGUE)])], {
      description: 'Code of the violation.',
    }),
    message: Type.String({ description: 'English sentence.' }),
    ruleApiName: nullable(Type.String({ description: 'Rule of the tenant that refused.' })),
    params: Type.Object({}, { additionalProperties: true, description: 'Facts that belong to the violation.' }),
  },
  { title: 'Violation', description: 'One violation.' },
);

/** A duplicate rule that found something. */
export const FiredDuplicateRule = Type.Object(
  {
    ruleApiName: Type.String(),
    label: Type.String(),
    action: Type.Enum(['block', 'confirm']),
    matches: Type.Array(
      Type.Object(
        {
          objectApiName: Type.String(),
          id: Type.String(),
          displayName: nullable(Type.String()),
          score: Type.Number({ minimum: 0, maximum: 1 }),
          matchedFields: Type.Array(Type.String()),
          record: Type.Object(
            {},
            { additionalProperties: true, description: 'The fields of the rule that the caller can read.' },
          ),
        },
        { title: 'DuplicateMatch' },
      ),
      { description: 'The ten best.' },
    ),
    hiddenMatchCount: Type.Integer({ description: 'Matches that the caller cannot see, where the rule tells.' }),
  },
  { title: 'FiredDuplicateRule', description: 'A duplicate rule that found something.' },
);

/** Facts that belong to a code. Those by which programs go on are declared; all others are named in words. */
export const ErrorDetails = Type.Object(
  {
    currentETag: Type.Optional(Type.String({ description: 'ETAG_MISMATCH: what the record has now.' })),
    approvalId: Type.Optional(
      Type.String({ format: 'uuid', description: 'APPROVAL_REQUIRED, _PENDING, _REJECTED, _EXPIRED: the approval.' }),
    ),
    fingerprint: Type.Optional(
      Type.String({ description: 'With approvalId: of the request, for the decision on it.' }),
    ),
    acrValues: Type.Optional(
      Type.Array(Type.String(), {
        description: 'AUTHENTICATION_INSUFFICIENT: acr_values of the sign-in that is needed.',
      }),
    ),
    maxAgeSeconds: Type.Optional(
      Type.Integer({ description: 'AUTHENTICATION_INSUFFICIENT: max_age of the sign-in that is needed.' }),
    ),
    rules: Type.Optional(Type.Array(FiredDuplicateRule, { description: 'DUPLICATE_RULE: the rules that matched.' })),
    confirmable: Type.Optional(
      Type.Boolean({ description: 'DUPLICATE_RULE: somebody may want the record all the same.' }),
    ),
    confirmationToken: Type.Optional(
      nullable(
        Type.String({ description: 'DUPLICATE_RULE: for X-Duplicate-Confirmation; null where not confirmable.' }),
      ),
    ),
    confirmationExpiresAt: Type.Optional(
      nullable(Type.String({ description: 'DUPLICATE_RULE: the end of the token.' })),
    ),
  },
  {
    title: 'ErrorDetails',
    additionalProperties: true,
    description: 'Facts that belong to the code; the page of the code names them.',
  },
);
