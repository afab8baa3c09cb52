/** Errors in the terms of SCIM: the code is one of the platform, `scimType` what RFC 7644 calls it. */
import type { ScimType } from '../../../contracts/scim.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';

const CODES = {
  invalidFilter: 'FILTER_INVALID',
  tooMany: 'PARAMETER_INVALID',
  uniqueness: 'UNIQUE_VALUE_CONFLICT',
  mutability: 'PARAMETER_INVALID',
  invalidSyntax: 'REQUEST_MALFORMED',
  invalidPath: 'PARAMETER_INVALID',
  noTarget: 'PARAMETER_INVALID',
  invalidValue: 'PARAMETER_INVALID',
  invalidVers: 'PARAMETER_INVALID',
} as const;

export const scimError = (scimType: ScimType, message: string): PlatformError =>
  new PlatformError(CODES[scimType], message, { details: { scimType } });

const SHOWN_CHARS = 60;

/** A value of the client in a message, cut short. */
export const shown = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
  return `"${text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text}"`;
};
