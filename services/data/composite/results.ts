/** Results of parts: the answer of a composite request, and the values of its references. */
import { ROLLED_BACK } from '../../../contracts/data/row-writes.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';
import { JsonError, parseJson } from '../../../lib/json/parse.ts';
import { memberAt } from '../../../lib/json/references.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { Effect } from '../../../mixins/mutation/unit.ts';

interface Item {
  readonly referenceId: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
}

const HEADERS = { ETag: 'etag', Location: 'location' } as const;

export class Results {
  readonly #items: Item[] = [];
  readonly #bodies = new Map<string, unknown>();
  #chars = 0;
  #isFull = false;

  /** The first part that failed; undefined: none has. */
  get failed(): string | undefined {
    return this.#items.find(({ status }) => status >= 400)?.referenceId;
  }

  /** Throws REQUEST_TOO_LARGE when a reply had no room, before another one is read in vain. */
  requireRoom(): void {
    if (this.#isFull) throw tooLong();
  }

  /**
   * Adds the reply of a part. Throws REQUEST_TOO_LARGE when all replies together are too long; what is `stored` for good is
   * told all the same, then with a body of null.
   */
  add(referenceId: string, { status = 200, headers = {}, body }: OperationReply, stored = false): void {
    let text = body === null ? 'null' : Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
    if (this.#chars + text.length > LIMITS.composite_body_max_bytes) {
      this.#isFull = true;
      if (!stored) throw tooLong();
      text = 'null';
    }
    this.#chars += text.length;
    const shown = Object.entries(HEADERS).flatMap(([from, to]) =>
      headers[from] === undefined ? [] : [[to, headers[from]]],
    );
    this.#items.push({ referenceId, status, headers: Object.fromEntries(shown), body: text });
  }

  refuse(referenceId: string, error: PlatformError): void {
    this.#items.push({ referenceId, status: error.status, headers: {}, body: JSON.stringify(bodyOf(error)) });
  }

  /** The value that a reference stands for; undefined when the part failed or its result has no such member. */
  find(name: string, path: readonly string[]): unknown {
    if (!this.#bodies.has(name)) this.#bodies.set(name, this.#parsed(name));
    return memberAt(this.#bodies.get(name), path);
  }

  #parsed(name: string): unknown {
    const item = this.#items.find(({ referenceId }) => referenceId === name);
    if (!item || item.status >= 400) return undefined;
    try {
      return parseJson(item.body, LIMITS.json_depth_max);
    } catch (error) {
      if (error instanceof JsonError) return undefined;
      throw error;
    }
  }

  /** The CompositeResult as JSON. `effects`: of a dry run. */
  answer(allOrNone: boolean, committed: boolean, effects?: readonly Effect[]): Buffer {
    const items = this.#items.map(
      ({ referenceId, status, headers, body }) =>
        `{"referenceId":${JSON.stringify(referenceId)},"status":${status},"headers":${JSON.stringify(headers)},"body":${body}}`,
    );
    const tried = effects ? `"effects":${JSON.stringify(effects)},` : '';
    return Buffer.from(`{"allOrNone":${allOrNone},"committed":${committed},${tried}"results":[${items.join()}]}`);
  }

  /** The results after a rollback: parts that failed keep their error, all others are reported as rolled back. */
  rolledBack(referenceIds: readonly string[]): object[] {
    return referenceIds.map((referenceId) => {
      const item = this.#items.find((one) => one.referenceId === referenceId && one.status >= 400);
      return item
        ? { referenceId, status: item.status, headers: {}, body: JSON.parse(item.body) }
        : { referenceId, status: 422, headers: {}, body: UNDONE };
    });
  }
}

const tooLong = (): PlatformError =>
  new PlatformError(
    'REQUEST_TOO_LARGE',
    `The results of all parts exceed the limit of ${LIMITS.composite_body_max_bytes} characters.`,
    { details: { maxBytes: LIMITS.composite_body_max_bytes } },
  );

const UNDONE = {
  code: ROLLED_BACK,
  message: 'Another part failed, and nothing was stored.',
  status: 422,
  retryable: false,
};

/** The error of a part, as the operation alone would have answered it. */
function bodyOf({ code, message, status, retryable, retryAfterSeconds, errors = [], details }: PlatformError): object {
  return {
    code,
    message,
    status,
    retryable,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(errors.length > 0 ? { errors: errors.slice(0, VIOLATIONS_MAX) } : {}),
    ...(details ? { details } : {}),
  };
}
