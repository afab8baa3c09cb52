/** Public answers that are made once: with a strong ETag, cacheable. */
import { strongEtag } from '../lib/values/etags.ts';

/** An answer that is the same for all requests. */
export interface SharedAnswer {
  readonly body: Uint8Array;
  readonly contentType: string;
  /** Strong, of the body as it is; the compressed form gets one of its own. */
  readonly etag: string;
  /** `Cache-Control` among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Request headers that choose among several such answers. */
  readonly variesOn?: readonly string[];
}

export const DAY_SECONDS = 86_400;
export const PLAIN = 'text/plain; charset=utf-8';

export function kept(
  contentType: string,
  text: string,
  maxAgeSeconds: number,
  { headers = {}, variesOn = [] }: Partial<Pick<SharedAnswer, 'headers' | 'variesOn'>> = {},
): SharedAnswer {
  const body = Buffer.from(text);
  return {
    body,
    headers: { 'Cache-Control': `public, max-age=${maxAgeSeconds}`, ...headers },
    contentType,
    etag: strongEtag(body),
    variesOn,
  };
}
