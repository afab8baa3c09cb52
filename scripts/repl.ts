/**
 * `npm run repl`: an operator's console on a running platform. It joins as one more node: over NATS when NATS_URL is
 * set, otherwise over the control socket in DATA_DIR, which only the owner of that folder can enter.
 */
import { joinPlatform } from './join.ts';

const { broker } = await joinPlatform('repl', { onJoin: (text) => console.log(text) });
await broker.waitForServices('metadata', 5_000, 100).catch(() => {
  console.log('No metadata service answers yet; `nodes` shows who is there.');
});
console.log('Try: nodes, services, actions, call metadata.tenants.list, help. Leave with Ctrl-D.');
broker.repl();
