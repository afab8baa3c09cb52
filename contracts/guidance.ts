/**
 * Guidance for assistants on each operation beyond its row. It is published with the documents and used by no
 * service. Source: docs/reference/assistant-manifest.md.
 */
import type { Guidance } from './guidance/types.ts';
import { SERVICES } from './services.ts';

// Each service declares that of all its operations, or does not compile.
export const GUIDANCE: ReadonlyMap<string, Guidance> = new Map(
  Object.values(SERVICES).flatMap(({ guidance }) => Object.entries<Guidance>(guidance)),
);
