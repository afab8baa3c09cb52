/** Answers the requests of provisioning clients: one handler for each route of contracts/scim.ts. */
import type { ScimCall } from '../../../contracts/scim.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { recordNotFound } from '../object-access.ts';
import { notModified, type ReadDeps, runRead } from '../read/read.ts';
import type { MutationDeps } from '../write/write.ts';
import { providerConfig, resourceTypes, schemas } from './discovery.ts';
import { type Json, listResponse, member, pageRequest, readBody, type Selection, selectionOf } from './messages.ts';
import { listGroups, readGroup } from './read-groups.ts';
import { listUsers, readUser } from './read-users.ts';
import type { Outcome } from './unit.ts';
import { refuseCreation, refuseDeletion, replaceGroup, updateGroup } from './write-groups.ts';
import { createUser, deleteUser, replaceUser, updateUser } from './write-users.ts';

export interface ScimDeps {
  readonly read: ReadDeps;
  readonly write: MutationDeps;
}

type Handler = (deps: ScimDeps, request: RequestContext, call: ScimCall) => Promise<OperationReply>;

/** Answers by the route; the caller has the permission manageUsers now, not only when the gateway asked. */
export const answerScim: Handler = async (deps, request, call) => {
  const handler = HANDLERS[call.operationId];
  if (!handler) throw new PlatformError('INTERNAL_ERROR', `There is no route ${call.operationId}.`);
  await deps.write.tenants.withView(request.tenantId, request.userId, async ({ access }) => {
    if (!request.scopes.includes('users:manage') || !holdsPermission(access.system, 'manageUsers'))
      throw permissionDenied('manageUsers');
  });
  return handler(deps, request, call);
};

const constant =
  (of: (baseUrl: string) => Json): Handler =>
  async (_deps, _request, { baseUrl, query }) => {
    refuseFilter(query);
    return { body: of(baseUrl) };
  };

const list =
  (of: (baseUrl: string) => readonly Json[]): Handler =>
  async (_deps, _request, { baseUrl, query }) => {
    refuseFilter(query);
    const resources = of(baseUrl);
    return { body: listResponse({ total: resources.length, resources }, 1) };
  };

/** Discovery is not filtered: RFC 7644 section 4 wants 403, lest a client believe it were. */
function refuseFilter(query: ScimCall['query']): void {
  if (member(query, 'filter') !== undefined)
    throw new PlatformError('OBJECT_PERMISSION_DENIED', 'SCIM discovery does not support filters.', {
      details: { layer: 'objectPermission' },
    });
}

const one =
  (of: (baseUrl: string) => readonly Json[]): Handler =>
  async (_deps, _request, { baseUrl, path }) => {
    const found = of(baseUrl).find(({ id }) => id === path['id']);
    if (!found) throw recordNotFound();
    return { body: found };
  };

/** `given`: the parameters of a list. */
const users =
  (given: (call: ScimCall) => Json): Handler =>
  (deps, request, call) =>
    runRead(
      async (read) => {
        const parameters = given(call);
        const [asked, selection] = [pageRequest(parameters), selectionOf(parameters)];
        const page = await listUsers(read, request, call.baseUrl, asked);
        return { body: listResponse(page, asked.startIndex, selection) };
      },
      deps.read,
      request,
      call,
    );

const groups =
  (given: (call: ScimCall) => Json): Handler =>
  (deps, request, call) =>
    runRead(
      async (read) => {
        const parameters = given(call);
        const [asked, selection] = [pageRequest(parameters), selectionOf(parameters)];
        const page = await listGroups(read, request, call.baseUrl, asked, selection);
        return { body: listResponse(page, asked.startIndex, selection) };
      },
      deps.read,
      request,
      call,
    );

const ofQuery = ({ query }: ScimCall): Json => query;

async function oneUser({ read }: ScimDeps, request: RequestContext, call: ScimCall, id: string): Promise<Found> {
  if (!isUuid(id)) throw recordNotFound();
  const found = await runRead((deps) => readUser(deps, request, call.baseUrl, id), read, request, call);
  if (!found) throw recordNotFound();
  return found;
}

async function oneGroup(
  { read }: ScimDeps,
  request: RequestContext,
  call: ScimCall,
  id: string,
  { wants }: Selection,
): Promise<Found> {
  const resource = await runRead(
    (deps) => readGroup(deps, request, call.baseUrl, id, wants('members')),
    read,
    request,
    call,
  );
  if (!resource) throw recordNotFound();
  const { version } = membersOf(resource['meta']);
  return { resource, etag: typeof version === 'string' ? version : null };
}

interface Found {
  readonly resource: Json;
  readonly etag: string | null;
}

/** A resource, or 304 to who has it. */
function shownTo({ query, headers }: ScimCall, { resource, etag }: Found): OperationReply {
  if (etag !== null && matchesEtag(headers.ifNoneMatch, etag)) return notModified(etag);
  return { headers: etag === null ? {} : { ETag: etag }, body: selectionOf(query).of(resource) };
}

/** The user as it is after a change. */
const changedUser =
  (change: (deps: MutationDeps, request: RequestContext, call: ScimCall) => Promise<Outcome>): Handler =>
  async (deps, request, call) => {
    const selection = selectionOf(call.query);
    const { id, created } = await change(deps.write, request, call);
    const { resource, etag } = await oneUser(deps, request, call, id);
    const location = String(membersOf(resource['meta'])['location']);
    return {
      status: created ? 201 : 200,
      headers: { ...(etag === null ? {} : { ETag: etag }), ...(created ? { Location: location } : {}) },
      body: selection.of(resource),
    };
  };

const changedGroup =
  (change: (deps: MutationDeps, request: RequestContext, call: ScimCall) => Promise<Outcome>): Handler =>
  async (deps, request, call) => {
    const selection = selectionOf(call.query);
    const { id } = await change(deps.write, request, call);
    const { resource, etag } = await oneGroup(deps, request, call, id, selection);
    return { status: 200, headers: etag === null ? {} : { ETag: etag }, body: selection.of(resource) };
  };

const HANDLERS: Readonly<Record<string, Handler>> = {
  'scim.config.get': constant(providerConfig),
  'scim.resourceTypes.list': list(resourceTypes),
  'scim.resourceTypes.get': one(resourceTypes),
  'scim.schemas.list': list(schemas),
  'scim.schemas.get': one(schemas),
  'scim.users.list': users(ofQuery),
  'scim.users.search': users(readBody),
  'scim.users.get': async (deps, request, call) =>
    shownTo(call, await oneUser(deps, request, call, (call.path['id'] ?? '').toLowerCase())),
  'scim.users.create': changedUser(createUser),
  'scim.users.replace': changedUser(replaceUser),
  'scim.users.update': changedUser(updateUser),
  'scim.users.delete': async (deps, request, call) => {
    await deleteUser(deps.write, request, call);
    return { status: 204, body: null };
  },
  'scim.groups.list': groups(ofQuery),
  'scim.groups.search': groups(readBody),
  'scim.groups.get': async (deps, request, call) =>
    shownTo(call, await oneGroup(deps, request, call, call.path['id'] ?? '', selectionOf(call.query))),
  'scim.groups.create': ({ read }, request, call) => refuseCreation(read, request, call),
  'scim.groups.replace': changedGroup(replaceGroup),
  'scim.groups.update': changedGroup(updateGroup),
  'scim.groups.delete': ({ read }, request, call) => refuseDeletion(read, request, call),
};
