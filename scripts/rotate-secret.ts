/**
 * `npm run rotate-secret`: seals what the running platform stores with its present PLATFORM_SECRET, so that
 * PLATFORM_SECRET_PREVIOUS can be taken away. Source: docs/reference/configuration.md#the-secret.
 */
import { call } from '../contracts/call.ts';
import { joinPlatform } from './join.ts';

const { broker, leave } = await joinPlatform('rotate-secret');
try {
  await broker.waitForServices('auth', 5_000, 100);
  const { resealed } = await call(broker, 'auth.secrets.reseal', {});
  console.log(`Sealed anew: ${resealed}. Nothing stored needs the previous secret any more.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await leave();
}
