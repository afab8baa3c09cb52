/** Manual shares of a record. */
import type { Handlers } from '../handlers.ts';
import { listShares } from './list.ts';

export const shareActions = ({ read, write }: Handlers) => ({
  'shares.list': read(listShares),
  'shares.create': write('share'),
  'shares.delete': write('unshare'),
});
