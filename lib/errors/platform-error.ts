import { CATALOGUE, type ErrorCode, isRetryable, type ViolationCode } from './catalogue.ts';

/** One violation, as it stands in `errors[]` of the Error body. */
export interface Violation<Code extends ViolationCode = ViolationCode> {
  /** RFC 6901 pointer into the body, or `query:<name>`, `header:<name>`, `path:<name>`. */
  pointer: string;
  field: string | null;
  code: Code;
  message: string;
  ruleApiName: string | null;
  params: Record<string, unknown>;
}

interface PlatformErrorOptions {
  errors?: Violation[];
  details?: Record<string, unknown>;
  retryAfterSeconds?: number;
  /** Extra response headers, such as WWW-Authenticate. */
  headers?: Record<string, string>;
  /** For the log only; never leaves the platform. */
  cause?: unknown;
}

/**
 * An expected failure with a code of the catalogue. It survives the bus: `toWire` on the way out, `fromWire` on the
 * way in (config/broker.ts). `message` is an English sentence for a developer: no secrets, no hidden values.
 */
export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  readonly code: ErrorCode;
  readonly errors: Violation[] | undefined;
  readonly details: Record<string, unknown> | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(code: ErrorCode, message: string, options: PlatformErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.errors = options.errors;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers;
  }

  get status(): number {
    return CATALOGUE[this.code].status;
  }

  /** True when the same key and body may be sent again unchanged. */
  get retryable(): boolean {
    return isRetryable(this.code);
  }

  /** The same failure with these violations. */
  withErrors(errors: Violation[]): PlatformError {
    const copy = PlatformError.fromWire({ ...this.toWire(), errors });
    copy.cause = this.cause;
    return copy;
  }

  toWire(): PlatformErrorWire {
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      errors: this.errors,
      details: this.details,
      retryAfterSeconds: this.retryAfterSeconds,
      headers: this.headers,
    };
  }

  static fromWire(wire: PlatformErrorWire): PlatformError {
    const options: PlatformErrorOptions = {};
    if (wire.errors) options.errors = wire.errors;
    if (wire.details) options.details = wire.details;
    if (wire.retryAfterSeconds !== undefined) options.retryAfterSeconds = wire.retryAfterSeconds;
    if (wire.headers) options.headers = wire.headers;
    return new PlatformError(wire.code, wire.message, options);
  }
}

export interface PlatformErrorWire {
  name: string;
  code: ErrorCode;
  message: string;
  errors?: Violation[] | undefined;
  details?: Record<string, unknown> | undefined;
  retryAfterSeconds?: number | undefined;
  headers?: Record<string, string> | undefined;
}

/** Shorthand for one violation. */
export function violation<Code extends ViolationCode>(
  pointer: string,
  code: Code,
  message: string,
  more: { field?: string | null; ruleApiName?: string | null; params?: Record<string, unknown> } = {},
): Violation<Code> {
  return {
    pointer,
    field: more.field ?? null,
    code,
    message,
    ruleApiName: more.ruleApiName ?? null,
    params: more.params ?? {},
  };
}
