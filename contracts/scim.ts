/**
 * The endpoint for provisioning (SCIM 2.0, RFC 7643 and RFC 7644): its routes, as rows like those of the operations so
 * that the same checks hold for them, and the action that answers them all. They are no operations of the API: their
 * bodies, errors and addresses are those of SCIM. Source: docs/reference/scim.md.
 */
import type { Operation, OperationCall, OperationReply } from '../lib/operation.ts';

/** Every path of the endpoint begins with it. */
export const SCIM_PREFIX = '/scim/v2';

export const SCIM_MEDIA_TYPE = 'application/scim+json';

export const isScimPath = (path: string): boolean =>
  path.startsWith(SCIM_PREFIX) && (path.length === SCIM_PREFIX.length || path[SCIM_PREFIX.length] === '/');

type Method = Operation['method'];

const row = (
  operationId: `scim.${string}`,
  method: Method,
  path: string,
  cost: number,
  mutation: boolean,
  summary: string,
): Operation => ({
  operationId,
  method,
  path,
  tag: 'data',
  summary,
  scopes: ['users:manage'],
  permission: 'manageUsers',
  risk: mutation ? 'high' : 'low',
  cost,
  mutation,
  ...(mutation ? { stepUp: true as const, givesAccess: { scope: 'users:manage' as const } } : {}),
  precondition: 'none',
  agentApproval: 'never',
  stability: 'stable',
  response: { status: 200, description: summary },
  errors: [],
  action: 'data.scim.handle',
});

/** Paths below SCIM_PREFIX. */
export const SCIM_ROUTES: readonly Operation[] = [
  row('scim.config.get', 'GET', '/ServiceProviderConfig', 1, false, 'Read the capabilities of the endpoint'),
  row('scim.resourceTypes.list', 'GET', '/ResourceTypes', 1, false, 'List the types of resources'),
  row('scim.resourceTypes.get', 'GET', '/ResourceTypes/{id}', 1, false, 'Read a type of resource'),
  row('scim.schemas.list', 'GET', '/Schemas', 1, false, 'List the schemas'),
  row('scim.schemas.get', 'GET', '/Schemas/{id}', 1, false, 'Read a schema'),
  row('scim.users.list', 'GET', '/Users', 2, false, 'List users'),
  row('scim.users.search', 'POST', '/Users/.search', 2, false, 'List users with a query in the body'),
  row('scim.users.get', 'GET', '/Users/{id}', 1, false, 'Read a user'),
  row('scim.users.create', 'POST', '/Users', 2, true, 'Create a user'),
  row('scim.users.replace', 'PUT', '/Users/{id}', 2, true, 'Replace a user'),
  row('scim.users.update', 'PATCH', '/Users/{id}', 2, true, 'Change a user'),
  row('scim.users.delete', 'DELETE', '/Users/{id}', 2, true, 'Deactivate a user and hide it from provisioning'),
  row('scim.groups.list', 'GET', '/Groups', 3, false, 'List groups'),
  row('scim.groups.search', 'POST', '/Groups/.search', 3, false, 'List groups with a query in the body'),
  row('scim.groups.get', 'GET', '/Groups/{id}', 2, false, 'Read a group'),
  row('scim.groups.create', 'POST', '/Groups', 2, true, 'Refused: groups are configuration'),
  row('scim.groups.replace', 'PUT', '/Groups/{id}', 5, true, 'Replace the members of a group'),
  row('scim.groups.update', 'PATCH', '/Groups/{id}', 5, true, 'Change the members of a group'),
  row('scim.groups.delete', 'DELETE', '/Groups/{id}', 2, true, 'Refused: groups are configuration'),
];

/**
 * A request to the endpoint, as the gateway hands it over. A mutation has the id of the request as its key, so that the
 * call may be repeated when a process is lost. `body` is not parsed yet.
 */
export interface ScimCall extends OperationCall<Uint8Array> {
  /** Public address of the platform. */
  readonly baseUrl: string;
}

export interface ScimActions {
  /** Answers a request to the endpoint in the form of SCIM; errors are those of the platform. */
  'data.scim.handle': { params: ScimCall; result: OperationReply };
}

/** SCIM names of the platform's errors that its codes do not determine: `details.scimType`. */
export type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue'
  | 'invalidVers';
