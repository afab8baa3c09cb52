/**
 * `npm run rotate-secret`: seals what the running platform stores with its present PLATFORM_SECRET, so that
 * PLATFORM_SECRET_PREVIOUS can be taken away. Source: docs/reference/configuration.md#the-secret.
 */
import { call } from '../contracts/call.ts';
import { readArguments } from './arguments.ts';
import { joinPlatform, requireServices } from './join.ts';

const COMMAND = {
  name: 'rotate-secret',
  usage:
    'npm run rotate-secret\n\nSeals what the running platform stores with its present PLATFORM_SECRET, so that ' +
    'PLATFORM_SECRET_PREVIOUS\ncan be taken away.',
};

readArguments(COMMAND, {});
const { broker, leave } = await joinPlatform('rotate-secret');
try {
  await requireServices(broker, 'auth');
  const { resealed } = await call(broker, 'auth.secrets.reseal', {});
  console.log(`Sealed anew: ${resealed}. Nothing stored needs the previous secret any more.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await leave();
}
