/** The person behind a token. */
import type { DataHandlers, Handlers } from '../handlers.ts';
import type { MutationDeps } from '../write/write.ts';
import { getPermissions } from './permissions.ts';
import { getProfile, updatePreferences } from './profile.ts';

export const meActions = ({ read, mutation }: Handlers, writeDeps: MutationDeps) =>
  ({
    'me.get': read(getProfile),
    'me.permissions': read(getPermissions),
    'me.updatePreferences': mutation((request, input) => updatePreferences(writeDeps, request, input)),
  }) satisfies Partial<DataHandlers>;
