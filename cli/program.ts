/** The commands of `erp`. */

import { createProgram, type Program } from './command.ts';
import { addAccess } from './commands/access.ts';
import { addAgent } from './commands/agent.ts';
import { addApi } from './commands/api.ts';
import { addAudit } from './commands/audit.ts';
import { addBulk } from './commands/bulk.ts';
import { addCalendar } from './commands/calendar.ts';
import { addCompletion } from './commands/completion.ts';
import { addComposite } from './commands/composite.ts';
import { addDashboards } from './commands/dashboards.ts';
import { addData } from './commands/data.ts';
import { addEvents } from './commands/events.ts';
import { addFiles } from './commands/files.ts';
import { addIdentity } from './commands/identity.ts';
import { addLogin } from './commands/login.ts';
import { addMetadata } from './commands/metadata.ts';
import { addNotifications } from './commands/notifications.ts';
import { addObjects } from './commands/objects.ts';
import { addTypes } from './commands/types.ts';
import { addUsers } from './commands/users.ts';
import { addWebhooks } from './commands/webhooks.ts';

/** The whole program, in the version that `--version` prints. */
export function buildProgram(version: string): Program {
  const program = createProgram(version);
  addLogin(program);
  addIdentity(program);
  addMetadata(program);
  addObjects(program);
  addTypes(program);
  addData(program);
  addComposite(program);
  addBulk(program);
  addFiles(program);
  addUsers(program);
  addAccess(program);
  addAudit(program);
  addDashboards(program);
  addNotifications(program);
  addCalendar(program);
  addEvents(program);
  addWebhooks(program);
  addAgent(program);
  addApi(program);
  addCompletion(program);
  return program;
}
