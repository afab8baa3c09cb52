/** Changes of the factors of a user, as operations of the tenant's audit trail name them. */
export type FactorEvent =
  | 'passkeyAdded'
  | 'passkeyRemoved'
  | 'authenticatorAdded'
  | 'authenticatorRemoved'
  | 'recoveryCodesMade'
  | 'recoveryCodeUsed'
  | 'reset';
