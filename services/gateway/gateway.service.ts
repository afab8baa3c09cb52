import type { ServiceSchema } from 'moleculer';
import type { ActionContext, ActionHandlers, EventHandlers } from '../../contracts/call.ts';
import type { GatewayActions } from '../../contracts/gateway.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import type { Operation, OperationCall, OperationReply } from '../../lib/operation.ts';
import type { Platform } from '../../mixins/platform.ts';
import { PublicDocuments } from './public/documents.ts';
import { Gateway } from './server.ts';

/** The Moleculer schema of gateway: it declares and delegates. */
export default function gatewayService(
  platform: Platform,
  operations: readonly Operation[] = OPERATIONS,
): ServiceSchema {
  let gateway: Gateway;
  let documents: PublicDocuments;
  const document =
    (name: 'openapi' | 'scopes' | 'capabilities') =>
    (ctx: ActionContext<OperationCall>): OperationReply =>
      documents.answer(name, ctx.params.headers.ifNoneMatch);
  return {
    name: 'gateway',
    actions: {
      'openapi.get': document('openapi'),
      'scopes.list': document('scopes'),
      'capabilities.get': document('capabilities'),
    } satisfies ActionHandlers<'gateway', GatewayActions>,
    events: {
      'auth.grants.revoked'(ctx) {
        gateway.grantsRevoked(ctx.params.grantIds);
      },
      'auth.keys.rotated'() {
        gateway.keysRotated();
      },
      '$services.changed'() {
        gateway.servicesChanged();
      },
      '$node.disconnected'() {
        gateway.servicesChanged();
      },
      '$node.connected'() {
        gateway.servicesChanged();
      },
    } satisfies EventHandlers,
    created() {
      gateway = new Gateway(platform, this, operations);
    },
    async started() {
      await gateway.start();
      documents = new PublicDocuments(operations, gateway.baseUrl, platform.config);
      this['baseUrl'] = gateway.baseUrl;
    },
    async stopped() {
      await gateway.stop();
    },
  };
}
