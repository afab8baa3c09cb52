/** Questions that many ask at the same moment, and that are answered once. */
import { setTimeout as pause } from 'node:timers/promises';

/** A question waits so long for others like it. */
const WAIT_MS = 20;

export class Together<Answer> {
  readonly #waiting = new Map<string, Promise<Answer>>();

  /** Nobody joins work that has begun: it may not see what they were woken for. */
  ask(question: string, work: () => Promise<Answer>): Promise<Answer> {
    const waiting = this.#waiting.get(question);
    if (waiting) return waiting;
    const answer = pause(WAIT_MS).then(() => {
      this.#waiting.delete(question);
      return work();
    });
    this.#waiting.set(question, answer);
    return answer;
  }
}
