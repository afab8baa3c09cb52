/** Tenants in which something was changed: told to the service events soon, and together. It may be lost. */
const TOGETHER_MS = 20;

export class WrittenTenants {
  readonly #send: (tenantIds: readonly string[]) => void;
  readonly #tenants = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (tenantIds: readonly string[]) => void) {
    this.#send = send;
  }

  note(tenantId: string): void {
    this.#tenants.add(tenantId);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const tenants = [...this.#tenants];
      this.#tenants.clear();
      this.#send(tenants);
    }, TOGETHER_MS).unref();
  }
}
