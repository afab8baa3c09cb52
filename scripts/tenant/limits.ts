/** `tenant limits [KEY [NAME=VALUE … | lift]]`: the same as `npm run limits`. */

import type { Command } from '@commander-js/extra-typings';
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { LIMITS_HELP, LimitsUsage, tenantLimits } from '../tenant-limits.ts';
import type { Session } from './session.ts';

export function addLimits(program: Command, session: Session): void {
  program
    .command('limits')
    .description('show or set the limits of a tenant')
    .argument('[key]')
    .argument('[limits...]', 'NAME=UNITS, NAME=default or lift')
    .addHelpText('after', `\n${LIMITS_HELP}`)
    .action(async (key, limits) => {
      await session.require('metadata');
      const text = await tenantLimits(await session.broker(), key, limits).catch((error: unknown) => {
        throw error instanceof LimitsUsage ? new InvalidArgumentError(error.message) : error;
      });
      session.show(text, {}, [text]);
    });
}
