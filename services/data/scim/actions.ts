/** Users and groups for provisioning clients (SCIM). Source: docs/reference/scim.md. */
import type { ScimCall } from '../../../contracts/scim.ts';
import type { Handlers } from '../handlers.ts';
import { answerScim, type ScimDeps } from './handle.ts';

export const scimActions = ({ mutation }: Handlers, deps: ScimDeps) => ({
  'scim.handle': mutation((request, call: ScimCall) => answerScim(deps, request, call)),
});
