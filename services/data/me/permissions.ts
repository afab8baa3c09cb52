/** Permissions of the caller, as their profile and permission sets give them. */
import type { Handler } from '../../../contracts/operations.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { isWritable } from '../../../lib/schema/record-types.ts';
import { visibleObject } from '../object-access.ts';
import { fromCurrentView } from '../read/objects.ts';
import type { ReadDeps } from '../read/read.ts';

export const getPermissions: Handler<'me.permissions.get', ReadDeps> = (deps, request, { query: { objectApiName } }) =>
  fromCurrentView<OperationReply>(deps, request, (view) => {
    const { objects, system, actions } = view.access;
    const shown = objectApiName === undefined ? Object.values(objects) : [visibleObject(view, objectApiName)];
    return {
      body: {
        objects: shown
          .map(({ object, permission: { create, read, update, delete: deletes }, readable, fields }) => ({
            apiName: object.apiName,
            create,
            read,
            update,
            delete: deletes,
            fields: readable.map((field) => ({
              apiName: field.apiName,
              read: true,
              edit: isWritable(object, field) && fields[field.apiName]?.edit === true,
            })),
          }))
          .sort((one, other) => (one.apiName < other.apiName ? -1 : 1)),
        system: [...system].sort(),
        actions: [...actions].sort(),
      },
    };
  });
