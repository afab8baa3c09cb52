/** Explanations of access to a record. */
import type { Handlers } from '../handlers.ts';
import { explainAccess } from './answer.ts';

export const explainActions = ({ read }: Handlers) => ({ 'access.explain': read(explainAccess) });
