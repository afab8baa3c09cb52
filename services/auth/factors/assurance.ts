/** How a person has signed in, as tokens say it: `amr` (RFC 8176) and `acr`. */

import { MULTI_FACTOR_ACR } from '../../../contracts/auth.ts';

/** One factor, as REFEDS calls it. */
export const SINGLE_FACTOR_ACR = 'https://refeds.org/profile/sfa';

export const PASSWORD_AMR: readonly string[] = ['pwd'];

/** A person who has signed in at an OpenID provider, as Microsoft Entra ID has it; nothing is registered for it. */
export const FEDERATED_AMR: readonly string[] = ['fed'];

/** A passkey with user verification is possession and knowledge or a biometric in one. */
export const passkeyAmr = ({ backupEligible }: { backupEligible: boolean }): string[] => [
  backupEligible ? 'swk' : 'hwk',
  'user',
  'mfa',
];

export const withSecondFactor = (amr: readonly string[], second: readonly string[]): string[] => [
  ...new Set([...amr, ...second, 'mfa']),
];

export const isMultiFactor = (amr: readonly string[]): boolean => amr.includes('mfa');

export const acrOf = (amr: readonly string[]): string => (isMultiFactor(amr) ? MULTI_FACTOR_ACR : SINGLE_FACTOR_ACR);
