import type { ServiceSchema } from 'moleculer';
import type { Platform } from '../../config/platform.ts';

/** The Moleculer schema of data: it declares and delegates. */
export default function dataService(_platform: Platform): ServiceSchema {
  return { name: 'data', actions: {} };
}
