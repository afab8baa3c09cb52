/** A request as the first span of the platform in its trace. Source: docs/reference/tracing.md. */
import { API_PREFIX } from '../../../lib/addresses.ts';
import { type Span, tracing } from '../../../mixins/tracing/tracing.ts';
import type { Exchange } from './exchange.ts';

/** Periodic requests of probes and Prometheus are not traced. */
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** null: nothing is traced. Of a trace that is not kept, the id goes along nevertheless. */
export function beginTrace(x: Exchange): Span | null {
  const traces = tracing();
  if (traces === null || UNTRACED.has(x.path)) return null;
  const parent = x.callersTraceparent;
  x.span = traces.begin({
    name: x.method,
    kind: 'server',
    startedAt: x.started,
    ...(parent === undefined ? {} : { parent, isFromCaller: true }),
  });
  return x.span;
}

/** The path is that of the operation, so that ids of records do not make a name each. */
export function endTrace(x: Exchange, span: Span, status: number): void {
  if (!span.isRecorded) return;
  const { routeIfKnown, session } = x;
  const route = routeIfKnown ? `${API_PREFIX}${routeIfKnown.operation.path}` : null;
  span.rename(route === null ? `${x.method} ${x.label}` : `${x.method} ${route}`);
  span.set({
    'http.request.method': x.method,
    'http.response.status_code': status,
    'erp.operation_id': x.label,
    'erp.request_id': x.requestId,
    ...(route === null ? {} : { 'http.route': route }),
    ...(session ? { 'erp.tenant_id': session.tenantId } : {}),
    ...(x.code ? { 'erp.error_code': x.code } : {}),
  });
  span.end(status >= 500 ? (x.code ?? String(status)) : null);
}
