/** Transitions between the states of a record, and actions on it. */
import type { Handlers } from '../handlers.ts';
import { type JudgeTransitions, listTransitions } from './list.ts';

export const transitionActions = ({ read, write }: Handlers, judgeTransitions: JudgeTransitions) => ({
  'transitions.list': read((deps, request, call: Parameters<typeof listTransitions>[2]) =>
    listTransitions({ ...deps, judgeTransitions }, request, call),
  ),
  'transitions.execute': write('transition'),
});
