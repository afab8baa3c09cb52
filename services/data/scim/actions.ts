/** Users and groups for provisioning clients (SCIM). Source: docs/reference/scim.md. */
import type { ScimCall } from '../../../contracts/scim.ts';
import type { Handlers } from '../handlers.ts';
import { answerScim, type ScimDeps } from './handle.ts';

/** `deps` is asked at each call: parts of it are known only once the service has started. */
export const scimActions = ({ mutation }: Handlers, deps: () => ScimDeps) => ({
  'scim.handle': mutation((request, call: ScimCall) => answerScim(deps(), request, call)),
});
