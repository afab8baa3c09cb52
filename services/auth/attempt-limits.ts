/** How many failures are free before each further one doubles the wait. Source: docs/reference/authentication.md. */
import { networkOf } from '../../lib/values/network.ts';

interface AttemptLimit {
  readonly freeFailures: number;
  readonly waitMaxSeconds: number;
}

/** Of one user: passwords, second factors. */
export const USER_ATTEMPTS: AttemptLimit = { freeFailures: 5, waitMaxSeconds: 300 };
/** Of one network, for passwords and factors together; many people may share it. */
const NETWORK_ATTEMPTS: AttemptLimit = { freeFailures: 30, waitMaxSeconds: 60 };
/** Guesses from many networks at many names. The wait is short: it keeps out people at a new place as well. */
export const TENANT_ATTEMPTS: AttemptLimit = { freeFailures: 300, waitMaxSeconds: 5 };
/** Codes of devices that do not exist, typed from one network, which many people may share. */
export const DEVICE_CODE_ATTEMPTS: AttemptLimit = { freeFailures: 20, waitMaxSeconds: 300 };

/** Requests for a new password from one network, for any users. */
export const RESET_REQUESTS: AttemptLimit = { freeFailures: 20, waitMaxSeconds: 300 };

/** One of the counters that an attempt counts for. */
export interface AttemptCounter {
  readonly key: string;
  readonly limit: AttemptLimit;
  /** Others fail there as well, so a success takes back one failure, not all. */
  readonly shared: boolean;
}

/** Passwords and factors from one network. */
export const networkCounter = (address: string): AttemptCounter => ({
  key: `address ${networkOf(address)}`,
  limit: NETWORK_ATTEMPTS,
  shared: true,
});
