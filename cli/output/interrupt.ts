/** Ctrl-C while something goes on that the user can come back to. */
import { EXIT } from '../failure.ts';

/** In the place of what an interruption does otherwise: `tell`, and the end. The result puts that back. */
export function onInterrupt(tell: () => void): () => void {
  const others = process.listeners('SIGINT');
  const stop = (): void => {
    tell();
    process.exit(EXIT.interrupted);
  };
  process.removeAllListeners('SIGINT');
  process.once('SIGINT', stop);
  return () => {
    process.off('SIGINT', stop);
    for (const other of others) process.on('SIGINT', other);
  };
}
