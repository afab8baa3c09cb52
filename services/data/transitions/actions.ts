/** Transitions between the states of a record, and actions on it. */
import type { Handlers } from '../handlers.ts';
import { listTransitions } from './list.ts';

export const transitionActions = ({ read, write }: Handlers) => ({
  'transitions.list': read(listTransitions),
  'transitions.execute': write('transition'),
});
