import type { ServiceSchema } from 'moleculer';
import { type ActionHandlers, call } from '../../contracts/call.ts';
import type { McpActions } from '../../contracts/mcp.ts';
import type { Platform } from '../../mixins/platform.ts';
import { Documents } from './documents.ts';
import { answer } from './endpoint.ts';
import { onceKnown } from './once-known.ts';

/** The Moleculer schema of mcp: it declares and delegates. */
export default function mcpService({ metrics, broker, log }: Platform): ServiceSchema {
  const documents = new Documents();
  return {
    name: 'mcp',
    actions: {
      'http.handle'(ctx) {
        const request = ctx.params;
        const { gateway, ticket } = request;
        return answer(
          {
            request,
            run: (asked) =>
              onceKnown(() => call(broker, 'gateway.operations.run', { ...asked, ticket }, { nodeID: gateway })),
            onError: (error) =>
              log.error({ requestId: request.requestId, err: error }, 'A request of an assistant failed.'),
          },
          documents,
        );
      },
    } satisfies ActionHandlers<'mcp', McpActions>,
    created() {
      documents.register(metrics);
    },
  };
}
