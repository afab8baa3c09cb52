import type { ServiceSchema } from 'moleculer';
import type { Platform } from '../../config/platform.ts';

/** The Moleculer schema of gateway: it declares and delegates. */
export default function gatewayService(_platform: Platform): ServiceSchema {
  return { name: 'gateway', actions: {} };
}
