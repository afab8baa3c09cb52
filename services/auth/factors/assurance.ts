/** How a person has signed in, as tokens say it: `amr` (RFC 8176) and `acr`. */

/** One factor, and several: the profiles of REFEDS, which the registry of levels of assurance lists (RFC 6711). */
export const SINGLE_FACTOR_ACR = 'https://refeds.org/profile/sfa';
export const MULTI_FACTOR_ACR = 'https://refeds.org/profile/mfa';

export const PASSWORD_AMR: readonly string[] = ['pwd'];

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
