/** Answers that are made once and the same for everybody: with a strong ETag, and for caches to keep. */
import { strongEtag } from '../../../lib/values/etags.ts';
import { precompress, type SharedAnswer } from '../reply.ts';

export const DAY_SECONDS = 86_400;
export const PLAIN = 'text/plain; charset=utf-8';

export function kept(
  contentType: string,
  text: string,
  maxAgeSeconds: number,
  { headers = {}, variesOn = [] }: Partial<Pick<SharedAnswer, 'headers' | 'variesOn'>> = {},
): SharedAnswer {
  const body = Buffer.from(text);
  precompress(body);
  return {
    body,
    headers: { 'Cache-Control': `public, max-age=${maxAgeSeconds}`, ...headers },
    contentType,
    etag: strongEtag(body),
    variesOn,
  };
}
