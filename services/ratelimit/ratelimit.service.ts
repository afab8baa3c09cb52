import type { ServiceSchema } from 'moleculer';
import type { Platform } from '../../config/platform.ts';

/** The Moleculer schema of ratelimit: it declares and delegates. */
export default function ratelimitService(_platform: Platform): ServiceSchema {
  return { name: 'ratelimit', actions: {} };
}
