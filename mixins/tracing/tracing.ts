import { codeOf } from '../../lib/errors/thrown.ts';
/**
 * The one door to traces of a process. Nothing is loaded and nothing is measured until main.ts has opened it, and then
 * only for requests that are traced. Spans know their parent by the work that is under way (mixins/watchdog/work.ts),
 * so that no library patches another one. Source: docs/reference/tracing.md.
 */

/** Never a value of a caller: names of ours, numbers, ids. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

type SpanKind = 'internal' | 'server' | 'client';

export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  /** The span that it is a part of; absent: it begins a trace. */
  readonly parent?: string | undefined;
  /** The parent is what a caller from outside has sent. */
  readonly isFromCaller?: boolean;
  readonly attributes?: Attributes;
  /** On the clock of `performance.now()`; absent: now. */
  readonly startedAt?: number;
}

export interface Span {
  /** The parent that child spans name. */
  readonly traceparent: string;
  /** It is kept; of one that is not, only its trace goes on. */
  readonly isRecorded: boolean;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** `failure`: a code or the name of an error, never a message. */
  end(failure?: string | null): void;
}

export interface Tracing {
  begin(span: SpanStart): Span;
  /** Sends what there is, for up to so many milliseconds. */
  stop(withinMs: number): Promise<void>;
}

let opened: Tracing | null = null;

/** `null` closes it. */
export function openTracing(tracing: Tracing | null): void {
  opened = tracing;
}

/** null: nothing is traced. */
export const tracing = (): Tracing | null => opened;

/** A part of a trace that is kept; null: there is none, and nothing to measure. */
export function beginPart(span: SpanStart & { readonly parent: string | undefined }): Span | null {
  if (opened === null || span.parent === undefined || !isKept(span.parent)) return null;
  return opened.begin(span);
}

/** The flag of a traceparent that says so. */
export const isKept = (traceparent: string): boolean => (traceparent.charCodeAt(traceparent.length - 1) & 1) === 1;

/** The name of what a span failed with. */
export function failureName(error: unknown): string {
  if (!(error instanceof Error)) return 'Error';
  const code = codeOf(error);
  return code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : error.name;
}
