import type { ServiceSchema } from 'moleculer';
import type { Platform } from '../../config/platform.ts';

/** The Moleculer schema of auth: it declares and delegates. */
export default function authService(_platform: Platform): ServiceSchema {
  return { name: 'auth', actions: {} };
}
