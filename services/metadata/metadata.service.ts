import type { ServiceSchema } from 'moleculer';
import type { Platform } from '../../config/platform.ts';

/** The Moleculer schema of metadata: it declares and delegates. */
export default function metadataService(_platform: Platform): ServiceSchema {
  return { name: 'metadata', actions: {} };
}
