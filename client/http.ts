/** One request to the platform: token, key, retries, and errors as `ErpError`. */
import { type Failed, underKey, untilAnswered } from './attempts.ts';
import { ErpError, type ErrorBody, NetworkError } from './errors.ts';
import { Keys } from './keys.ts';

/** The access token for a call; `renew`: the platform has refused the last one as expired. */
export type TokenSource = (renew: boolean) => string | Promise<string>;

export interface HttpOptions {
  /** Address of the platform, without `/api/v1`. */
  readonly baseUrl: string;
  readonly token: TokenSource;
  /** How long one answer may take; 40 seconds unless given. */
  readonly timeoutMs?: number;
}

export interface Call {
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** The request changes nothing although it is a POST. */
  readonly read?: boolean;
  /** A key of the caller's own, for work that goes on in another process. */
  readonly idempotencyKey?: string | undefined;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: JSON; what is public around it is typed
  readonly body: any;
}

const TIMEOUT_MS = 40_000;

export class Http {
  readonly #options: HttpOptions;
  readonly #keys = new Keys();

  constructor(options: HttpOptions) {
    this.#options = { ...options, baseUrl: options.baseUrl.replace(/\/+$/, '') };
  }

  /** `path` below `/api/v1`, with its values encoded. */
  async send(method: string, path: string, { query, body, headers, read, idempotencyKey }: Call = {}): Promise<Reply> {
    const url = new URL(`${this.#options.baseUrl}/api/v1${path}`);
    for (const [name, value] of Object.entries(query ?? {}))
      if (value !== undefined) url.searchParams.set(name, typeof value === 'string' ? value : JSON.stringify(value));
    const text = body === undefined ? undefined : JSON.stringify(body);
    const chosen = Object.entries(headers ?? {}).filter(
      (header): header is [string, string] => header[1] !== undefined,
    );
    const mutation = method !== 'GET' && !read;
    let renew = false;
    const attempts = (key: string | undefined) => ({
      mutation,
      attempt: async () => {
        const token = await this.#options.token(renew);
        renew = false;
        return this.#once(method, url, text, {
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          ...(text === undefined ? {} : { 'content-type': 'application/json' }),
          ...Object.fromEntries(chosen),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        });
      },
      failed: failedOf,
      renew: async () => {
        renew = true;
      },
      wait: (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds)),
    });
    if (!mutation) return untilAnswered(attempts(undefined));
    const intention = this.#keys.begin([method, url.href, chosen, text], idempotencyKey);
    return underKey(intention, (doubt) => untilAnswered(attempts(intention.key), doubt), {
      failed: failedOf,
      undecided: (error) => error,
    });
  }

  async #once(method: string, url: URL, body: string | undefined, headers: Record<string, string>): Promise<Reply> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS),
      });
      text = await response.text();
    } catch (cause) {
      throw new NetworkError(`${url.origin} gave no answer.`, { cause });
    }
    const json = parse(text);
    if (response.ok && json !== undefined) return { status: response.status, headers: response.headers, body: json };
    if (isErrorBody(json)) throw new ErpError(json);
    const message = `${url.origin} answered with status ${response.status} and no JSON of this API.`;
    throw new ErpError({ code: 'CLIENT_PROTOCOL', message, status: response.status, requestId: '' });
  }
}

function failedOf(error: unknown): Failed | null {
  if (error instanceof NetworkError) return { status: null };
  return error instanceof ErpError ? error.answer : null;
}

/** Undefined: the text is no JSON. An answer without a body is null. */
function parse(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isErrorBody = (value: unknown): value is ErrorBody =>
  typeof value === 'object' && value !== null && 'code' in value && 'status' in value && 'message' in value;
