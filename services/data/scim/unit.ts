/**
 * Changes of users for a provisioning client: the steps of every write of a User record, several of them in one
 * transaction together with what the client calls them. Other changes of users wait, so that what a change is
 * computed from still holds when it is written.
 */

import type { ScimCall } from '../../../contracts/scim.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { visibleObject } from '../object-access.ts';
import { etagOf } from '../sql.ts';
import type { View } from '../view.ts';
import { recordError } from '../write/constraint-errors.ts';
import { CREATE_STEPS } from '../write/create.ts';
import { standardObject } from '../write/standard-objects.ts';
import { runTasks } from '../write/tasks.ts';
import { withAllConflicts } from '../write/unique.ts';
import { UPDATE_STEPS } from '../write/update.ts';
import type { MutationCall, MutationDeps, Write } from '../write/write.ts';
import { lockStateStatement, type StoredUser } from './provisioned.sql.ts';
import type { UserFields } from './user-changes.ts';

/** A change in progress. */
export interface Change {
  readonly unit: Unit;
  readonly view: View;
  create(id: string, fields: object): Promise<void>;
  update(changes: readonly UserUpdate[]): Promise<void>;
}

interface UserUpdate {
  readonly user: Pick<StoredUser, 'id' | 'recordVersion'>;
  readonly fields: object;
}

/** Stored under the request's key: its resource, and whether it was created. */
export interface Outcome {
  readonly id: string;
  readonly created: boolean;
}

/** Runs `work` in one transaction. `username`: one that is given to the user `id`. */
export async function changeUsers(
  deps: MutationDeps,
  request: RequestContext,
  asked: ScimCall,
  { id, username }: { id: string; username?: string },
  work: (change: Change) => Promise<Outcome>,
): Promise<Outcome> {
  const { database } = deps.platform;
  const { operationId, headers, fingerprint } = asked;
  const call: MutationCall = {
    operationId,
    path: { objectApiName: 'User', id },
    query: {},
    headers: headers.idempotencyKey === undefined ? {} : { idempotencyKey: headers.idempotencyKey },
    ...(fingerprint === undefined ? {} : { fingerprint }),
  };
  let view: View | undefined;
  const reply = await runIdempotent(
    {
      database,
      request,
      call,
      key: idempotencyKey(call, request),
      service: 'data',
      toError: (error) => recordError(view, call, error),
    },
    (attempt) =>
      deps.tenants.withView(request.tenantId, request.userId, async (current) => {
        view = current;
        const access = visibleObject(current, 'User');
        // Asked before a connection is taken: another service needs one, too.
        const usernameConflict =
          username === undefined
            ? null
            : ((await standardObject(access.object)?.usernameConflict(deps, request.tenantId, id, access, {
                mutation: 'update',
                call,
                body: { username },
                external: null,
              })) ?? null);
        let last: Write | null = null;
        return attempt
          .inUnit(async (unit) => {
            const stored = await unit.claim();
            if (stored) return stored;
            unit.actAs('tenant');
            const change = changeIn(unit, current, { deps, call, access, usernameConflict, username }, (write) => {
              last = write;
            });
            await unit.tx.query(lockStateStatement(unit.schema));
            const outcome = await work(change);
            return unit.complete({ body: outcome });
          })
          .catch(async (error: unknown) => {
            throw await withAllConflicts(database, last, error);
          });
      }),
  );
  await deps.usersChanged(request.tenantId);
  return JSON.parse(String(reply.body));
}

interface Parts extends Pick<Write, 'deps' | 'call' | 'access' | 'usernameConflict'> {
  /** The username that was asked about. */
  readonly username: string | undefined;
}

type UserTask = Pick<Write, 'mutation' | 'id' | 'ifMatch'> & { readonly fields: UserFields & object };

function changeIn(unit: Unit, view: View, parts: Parts, begun: (write: Write) => void): Change {
  const { deps, call, access, username } = parts;
  const taskOf = ({ mutation, id, fields, ifMatch }: UserTask) => {
    if (fields.username !== undefined && fields.username !== username)
      throw new PlatformError('WRITE_CONTENTION', 'The user has changed meanwhile. Try again.', {
        retryAfterSeconds: 1,
      });
    return {
      mutation,
      steps: mutation === 'create' ? CREATE_STEPS : UPDATE_STEPS,
      call: { ...call, path: { objectApiName: 'User', id } },
      access,
      id,
      body: { ...fields },
      ifMatch,
      usernameConflict: fields.username === undefined ? null : parts.usernameConflict,
    };
  };
  const run = (tasks: readonly UserTask[]): Promise<void> =>
    runTasks(
      unit,
      { deps, call, view, begun },
      tasks.map((task) => () => taskOf(task)),
    );
  return {
    unit,
    view,
    create: (id, fields) => run([{ mutation: 'create', id, fields, ifMatch: [] }]),
    update: (changes) =>
      run(
        changes.map(({ user: { id, recordVersion }, fields }) => ({
          mutation: 'update',
          id,
          fields,
          ifMatch: [etagOf(recordVersion)],
        })),
      ),
  };
}
