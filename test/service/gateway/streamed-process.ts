/** A gateway in front of a service that streams, in a process of its own: it answers the last upload as a file. */
import type { StreamedBody } from '../../../lib/streams.ts';
import { startStreamedStage } from './streamed-service.ts';

/** Its message when it listens. */
export interface Listening {
  readonly baseUrl: string;
  readonly token: string;
}

const streamed = await startStreamedStage({ DATA_DIR: process.argv[2]! });
streamed.refuse = ({ received }: StreamedBody) => {
  if (!received || 'failed' in received) return;
  const { key, bytes, sha256 } = received;
  streamed.file = { parts: [{ key, bytes }], sha256, contentType: 'application/octet-stream' };
};
const listening: Listening = { baseUrl: streamed.stage.baseUrl, token: await streamed.stage.token() };
process.send?.(listening);
process.once('SIGTERM', () => {
  void streamed.stage.stop().then(() => process.exit());
});
