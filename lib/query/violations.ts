/** Collects the violations of a query, so that one answer names them all; the first decides the code. */
import { type ErrorCode, isErrorCode, type ViolationCode } from '../errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../errors/platform-error.ts';
import { ViolationList } from '../errors/violation-list.ts';

export class Violations {
  readonly #found = new ViolationList();
  #code: ErrorCode | null = null;
  #details: Record<string, unknown> | undefined;

  /** `details` become the error's details if this violation is the first, and its params in any case. */
  add(
    pointer: string,
    code: ViolationCode,
    message: string,
    more: { field?: string | null; conditionId?: string | null; details?: Record<string, unknown> } = {},
  ): void {
    const params: Record<string, unknown> = { ...more.details };
    if (more.conditionId) params.conditionId = more.conditionId;
    if (this.#code === null) {
      this.#code = isErrorCode(code) ? code : 'VALIDATION_FAILED';
      if (Object.keys(params).length > 0) this.#details = params;
    }
    this.#found.add(() => violation(pointer, code, message, { field: more.field ?? null, params }));
  }

  get length(): number {
    return this.#found.list.length;
  }

  /** As many of them as an answer shows. */
  get list(): readonly Violation[] {
    return this.#found.list;
  }

  /** Throws when anything was added. `umbrella`: the code of all of them together, instead of that of the first. */
  throwIfAny(umbrella?: ErrorCode): void {
    if (this.#code === null) return;
    const { list, count } = this.#found;
    const [first] = list;
    throw new PlatformError(
      umbrella ?? this.#code,
      list.length === 1 && first ? first.message : `The query has ${count} errors. The first: ${first?.message}`,
      { errors: [...list], ...(this.#details && !umbrella ? { details: this.#details } : {}) },
    );
  }
}
