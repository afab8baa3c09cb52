/** Files of records, for bulk. */
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import type { Handlers } from '../handlers.ts';
import { exportSegment } from './export.ts';

export const exportActions = ({ ask }: Pick<Handlers, 'ask'>, blobs: Pick<Blobs, 'write'>) => ({
  'rows.export': ask((deps, asker, segment: Parameters<typeof exportSegment>[2]) =>
    exportSegment({ ...deps, blobs }, asker, segment),
  ),
});
