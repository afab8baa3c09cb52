/** Reverts the changes of agent runs. */
import type { Handlers } from '../handlers.ts';
import { type RevertDeps, type RevertInput, revertRun } from './revert.ts';

export const revertActions = ({ mutation }: Handlers, deps: RevertDeps) => ({
  'agentRuns.revert': mutation((request, call: RevertInput) => revertRun(deps, request, call)),
});
