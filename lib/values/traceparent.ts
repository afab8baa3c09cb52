/** W3C Trace Context: which trace a request belongs to, and the span in it that caused what follows. */

interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Two hexadecimal digits as a number; bit 0: the spans of the trace are kept. */
  readonly flags: number;
}

export const SAMPLED = 1;
const LENGTH = 55;
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The header of a request as version 00; null when it is none. Later versions may have more behind what is read here. */
export function traceparentOf(header: unknown): string | null {
  if (typeof header !== 'string' || header.length < LENGTH) return null;
  const head = header.slice(0, LENGTH);
  const isWhole = header.length === LENGTH || (!header.startsWith('00') && header[LENGTH] === '-');
  return isWhole && FORM.test(head) ? `00${head.slice(2)}` : null;
}

/** The parts of a traceparent that `traceparentOf` accepted. */
export const parseTraceparent = (text: string): TraceParent => ({
  traceId: text.slice(3, 35),
  spanId: text.slice(36, 52),
  flags: Number.parseInt(text.slice(53, 55), 16),
});

export const formatTraceparent = ({ traceId, spanId, flags }: TraceParent): string =>
  `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
