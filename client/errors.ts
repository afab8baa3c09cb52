/** Failures of the platform and of the network. Source: docs/reference/errors.md. */

/** One violation, as it stands in `errors` of an answer. */
export interface Violation {
  /** RFC 6901 pointer into the body, or `query:<name>`, `header:<name>`, `path:<name>`. */
  readonly pointer: string;
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
  readonly ruleApiName: string | null;
  readonly params: Readonly<Record<string, unknown>>;
}

/** An answer that is no success. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly status: number;
  readonly requestId: string;
  readonly retryable?: boolean;
  readonly retryAfterSeconds?: number;
  readonly errors?: readonly Violation[];
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The platform refused the request, or failed. */
export class ErpError extends Error {
  override readonly name: string = 'ErpError';
  readonly code: string;
  readonly status: number;
  /** Names the request in the logs of the platform. */
  readonly requestId: string;
  readonly violations: readonly Violation[];
  readonly details: Readonly<Record<string, unknown>>;
  readonly answer: ErrorBody;

  constructor(answer: ErrorBody, options?: ErrorOptions) {
    super(answer.message, options);
    this.answer = answer;
    this.code = answer.code;
    this.status = answer.status;
    this.requestId = answer.requestId;
    this.violations = answer.errors ?? [];
    this.details = answer.details ?? {};
  }

  /**
   * Messages by field, for the places beside the inputs of a form. Under '' is what belongs to no field: violations of the
   * record as a whole, or the message where there are no violations.
   */
  get byField(): Readonly<Partial<Record<string, readonly string[]>>> {
    const found: Record<string, string[]> = Object.create(null);
    for (const violation of this.violations) (found[fieldOf(violation)] ??= []).push(violation.message);
    return this.violations.length > 0 ? found : { '': [this.message] };
  }
}

/** A violation names its field; where it does not, the first step of a pointer into the body does. */
const fieldOf = ({ field, pointer }: Violation): string => field ?? /^\/([A-Za-z]\w*)(?:\/|$)/.exec(pointer)?.[1] ?? '';

/** The record was changed since it was read (412). Nothing was written. */
export class ConflictError<Base, Changes, Current> extends ErpError {
  override readonly name = 'ConflictError';
  /** The record from which the change started. */
  readonly base: Base;
  /** The intended change. */
  readonly changes: Changes;
  /** The record as it is now; null: it is gone or can no longer be seen. */
  readonly current: Current | null;

  constructor(error: ErpError, versions: { base: Base; changes: Changes; current: Current | null }) {
    super(error.answer, { cause: error });
    this.base = versions.base;
    this.changes = versions.changes;
    this.current = versions.current;
  }
}

/** No answer came, or one that is no answer of the platform. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';
}

/** The user has to sign in (again). `code` is that of the authorization server, such as `access_denied`. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
