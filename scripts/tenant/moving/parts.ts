/**
 * Everything that the database holds for a tenant beside its records, as the services declare it: what of it is moved,
 * and what stays behind. Source: docs/reference/moving-tenants.md#what-is-in-the-file.
 */
import { SERVICES } from '../../../config/services.ts';
import type { MovedTable } from '../../../contracts/declaration.ts';

/** In the order in which they travel, behind the records. */
export const PARTS: readonly MovedTable[] = Object.values(SERVICES).flatMap(({ moving }) => moving?.parts ?? []);
