/** Failures that end a command, with their exit codes. */
import type { ErrorCode, ViolationCode } from '../lib/errors/catalogue.ts';
import type { Violation } from '../lib/errors/platform-error.ts';

/** Exit codes of `erp`; scripts rely on them. */
export const EXIT = {
  ok: 0,
  error: 1,
  usage: 2,
  authentication: 3,
  permission: 4,
  conflict: 5,
  validation: 6,
  rate: 7,
  job: 8,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

interface FailureOptions {
  /** Remedy for the user. */
  hint?: string | undefined;
  cause?: unknown;
  /** Printed with --json in the place of code and message. */
  body?: object;
}

/** A failure that is reported to the user in a sentence. Anything else that is thrown is a fault of this program. */
export class Failure extends Error {
  readonly code: string;
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;
  /** Output of `--json` on standard error. */
  readonly body: object;

  constructor(code: string, exitCode: ExitCode, message: string, { hint, cause, body }: FailureOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.exitCode = exitCode;
    this.hint = hint;
    this.body = body ?? { code, message, ...(hint ? { hint } : {}) };
  }
}

/** The command was called wrongly. */
export const usage = (message: string, hint?: string): Failure =>
  new Failure('CLIENT_USAGE', EXIT.usage, message, { hint });

/** No user is signed in, or the sign-in did not work. */
export const signInNeeded = (message: string, hint?: string): Failure =>
  new Failure('CLIENT_SIGN_IN', EXIT.authentication, message, { hint });

/** Body of every error answer of the API; docs/reference/errors.md. */
export interface ErrorBody {
  code: ErrorCode;
  message: string;
  status: number;
  requestId: string;
  retryable?: boolean;
  retryAfterSeconds?: number;
  errors?: Violation<ViolationCode>[];
  details?: Record<string, unknown>;
}

/** The API refused the request, or failed. `text` is its answer as it came. */
export class ApiFailure extends Failure {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly answer: ErrorBody;
  readonly text: string;

  constructor(answer: ErrorBody, text: string, hint?: string) {
    super(answer.code, exitCodeOf(answer), answer.message, { hint: hint ?? adviceOn(answer), body: answer });
    this.status = answer.status;
    this.requestId = answer.requestId;
    this.answer = answer;
    this.text = text;
  }

  /** The same failure with advice. */
  advised(hint: string): ApiFailure {
    return new ApiFailure(this.answer, this.text, hint);
  }
}

/** Remedy for an error whose message gives none. */
function adviceOn({ code, status, details }: ErrorBody): string | undefined {
  switch (code) {
    case 'AUTHENTICATION_INSUFFICIENT':
      return 'erp login --step-up';
    case 'SCOPE_INSUFFICIENT': {
      const required = Array.isArray(details?.['required']) ? details['required'].join(' ') : '';
      return `The sign-in does not cover this${required ? ` (${required})` : ''}: erp login asks for everything that commands need, erp login --scope "…" for what it names. A token of ERP_TOKEN needs it from its maker.`;
    }
    case 'APPROVAL_REQUIRED':
    case 'APPROVAL_PENDING': {
      const { approvalId, status: state, expiresAt } = details ?? {};
      return `It waits for a decision on approval ${approvalId} (${state ?? 'pending'}${expiresAt ? `, until ${expiresAt}` : ''}): erp agent approvals show ${approvalId}. Repeat the same command once it is approved.`;
    }
    default:
      return status === 401 ? 'Sign in: erp login' : undefined;
  }
}

/** The exit code that stands for an error of the API. */
export function exitCodeOf({ status }: Pick<ErrorBody, 'status'>): ExitCode {
  if (status === 401) return EXIT.authentication;
  if (status === 403) return EXIT.permission;
  if (status === 409 || status === 412) return EXIT.conflict;
  if (status === 400 || status === 413 || status === 415 || status === 422) return EXIT.validation;
  if (status === 429) return EXIT.rate;
  return EXIT.error;
}
