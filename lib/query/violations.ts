/** Collects every violation of a query, so that one answer names them all; the first decides the code. */
import type { ErrorCode } from '../errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../errors/platform-error.ts';

export class Violations {
  readonly #list: Violation[] = [];
  #code: ErrorCode | null = null;
  #details: Record<string, unknown> | undefined;

  /** `details` become the error's details if this violation is the first, and its params in any case. */
  add(
    pointer: string,
    code: ErrorCode,
    message: string,
    more: { field?: string | null; conditionId?: string | null; details?: Record<string, unknown> } = {},
  ): void {
    const params: Record<string, unknown> = { ...more.details };
    if (more.conditionId) params.conditionId = more.conditionId;
    if (this.#code === null) {
      this.#code = code;
      if (Object.keys(params).length > 0) this.#details = params;
    }
    this.#list.push(violation(pointer, code, message, { field: more.field ?? null, params }));
  }

  get length(): number {
    return this.#list.length;
  }

  /** Throws when anything was added. */
  throwIfAny(): void {
    if (this.#code === null) return;
    const [first] = this.#list;
    throw new PlatformError(
      this.#code,
      this.#list.length === 1 && first
        ? first.message
        : `The query has ${this.#list.length} errors. The first: ${first?.message}`,
      { errors: this.#list, ...(this.#details ? { details: this.#details } : {}) },
    );
  }
}
