/** `users`: the people of the tenant, for administrators. They are records of `User`, and named by username or id. */
import { LIMITS } from '../../lib/limits.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';
import { agreed, showChange } from '../data/change.ts';
import { listRecords } from '../data/list.ts';
import { namesOf, userIdOf } from '../data/names.ts';
import { type DataRecord, recordOf } from '../data/records.ts';
import { ApiFailure, usage } from '../failure.ts';
import type { Answer } from '../http/api.ts';
import { valueText } from '../output/values.ts';

const USER = 'username, address or id';
const COLUMNS = 'username,name,profileApiName,roleApiName,permissionSetApiNames,active,lastSignInAt';
const collect = (value: string, before: string[] = []): string[] => [...before, value];

export function addUsers(program: Program): void {
  const users = addGroup(program, 'users', 'people who sign in, and what they hold');
  addReads(users);
  addInvitations(users);
  addActivity(users);
  addRights(users);
}

function addReads(users: Group): void {
  users
    .command('list')
    .description('list users')
    .option('--search <words>', 'words that begin words of their names, usernames or addresses')
    .option('--where <condition>', 'as with data list, such as active=true or roleApiName=SalesRep', collect)
    .option('--take <number>', `users per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .option('--all', 'all pages; with --json a line per user')
    .option('--csv', 'as CSV with a header')
    .action(act((run, options) => listRecords(run, 'User', { ...options, fields: COLUMNS, sort: 'username' })));
  users
    .command('get')
    .description('show a user and what they hold')
    .argument('<user>', USER)
    .action(
      act(async (run, user) => {
        const api = await run.api();
        const path = { objectApiName: 'User', id: await userIdOf(api, user) };
        const answer = await api.call('data.records.get', { path });
        const found = recordOf(answer.body);
        const managerId = valueText(found['managerId']);
        const manager =
          run.output.json || !managerId ? undefined : (await namesOf(api, 'User', [managerId])).get(managerId);
        run.output.result(answer, () => showUser(run, found, manager ?? managerId));
      }),
    );
}

function showUser({ output }: Run, user: DataRecord, manager: string): void {
  const text = (name: string): string => valueText(user[name]);
  output.pairs([
    ['user', `${text('name')} <${text('username')}>`],
    ['id', text('id')],
    ['mail', text('email')],
    ['active', user['active'] === true ? 'yes' : 'no'],
    ['profile', text('profileApiName')],
    ['role', text('roleApiName')],
    ['permission sets', text('permissionSetApiNames')],
    ['manager', manager],
    ['last sign-in', text('lastSignInAt')],
  ]);
}

function addInvitations(users: Group): void {
  users
    .command('invite')
    .description('create a user, who gets a mail with a link to choose a password')
    .argument('<username>', 'in a mail domain of the tenant, such as nora@example.com')
    .requiredOption('--name <name>', 'as it is shown to others')
    // --profile is the sign-in to work with.
    .requiredOption('--user-profile <profile>', 'apiName of the profile')
    .option('--email <address>', 'where the mail goes (default: the username)')
    .option('--role <role>', 'apiName of the role')
    .option('--permission-set <set>', 'apiName of a permission set; can be repeated', collect)
    .option('--manager <user>', USER)
    .option('--inactive', 'send no invitation yet: users reactivate does')
    .action(
      act(async (run, username, { name, userProfile, email, role, permissionSet, manager, inactive }) => {
        const api = await run.api();
        const body = {
          username,
          displayName: name,
          email: email ?? username,
          profileApiName: userProfile,
          active: inactive !== true,
          ...(role ? { roleApiName: role } : {}),
          ...(permissionSet ? { permissionSetApiNames: permissionSet } : {}),
          ...(manager ? { managerId: await userIdOf(api, manager) } : {}),
        };
        const path = { objectApiName: 'User' };
        const answer = await api.call('data.records.create', { path, body }, { what: 'The invitation' });
        showChange(run, answer, () => {
          const id = valueText(recordOf(answer.body)['id']);
          if (!run.output.terminal.pretty) run.output.line(id);
          else if (inactive)
            run.output.line(`Created ${username}, who is not invited yet: erp users reactivate ${username}`);
          else run.output.line(`Invited ${username} by mail to ${body.email}.`);
        });
      }),
    );
  users
    .command('resend')
    .description('send the invitation again to a user without a password')
    .argument('<user>', USER)
    .action(
      act(async (run, user) => {
        const api = await run.api();
        const userId = await userIdOf(api, user);
        const answer = await api.call('users.invitations.create', { path: { userId } }, { what: 'The invitation' });
        run.output.result(answer, () => run.output.line(`Another mail is on its way to ${user}.`));
      }),
    );
}

function addActivity(users: Group): void {
  users
    .command('deactivate')
    .description('end all sessions of a user and disable sign-in')
    .argument('<user>', USER)
    .option('--yes', 'do not ask')
    .action(
      act(async (run, user, { yes }) => {
        const ask = run.output.terminal.interactive && !yes && !run.options.dryRun;
        if (ask && !(await agreed(run, `Deactivate ${user}?`))) throw usage('Nothing was changed.');
        await changeUser(run, user, ({ active }) =>
          active === false ? `${user} is not active.` : { body: { active: false }, done: `Deactivated ${user}.` },
        );
      }),
    );
  users
    .command('reactivate')
    .description('enable sign-in again; a user without a password is invited')
    .argument('<user>', USER)
    .action(
      act((run, user) =>
        changeUser(run, user, ({ active }) =>
          active === true ? `${user} is active.` : { body: { active: true }, done: `Reactivated ${user}.` },
        ),
      ),
    );
}

function addRights(users: Group): void {
  const sets = users.command('permission-sets').description('permission sets of a user, one by one');
  sets
    .command('list')
    .description('list the permission sets that are assigned to a user')
    .argument('<user>', USER)
    .action(
      act(async (run, user) => {
        const api = await run.api();
        const path = { objectApiName: 'User', id: await userIdOf(api, user) };
        const answer = await api.call('data.records.get', { path, query: { fields: 'id,permissionSetApiNames' } });
        run.output.result(answer, () =>
          run.output.table(
            [{ title: 'Permission set' }],
            setsOf(recordOf(answer.body)).map((set) => [set]),
          ),
        );
      }),
    );
  sets
    .command('add')
    .description('assign a permission set besides those that the user has')
    .argument('<user>', USER)
    .argument('<set>', 'apiName')
    .action(
      act((run, user, set) =>
        changeUser(run, user, (record) => {
          const held = setsOf(record);
          if (held.includes(set)) return `${user} has ${set}.`;
          return { body: { permissionSetApiNames: [...held, set] }, done: `Assigned ${set} to ${user}.` };
        }),
      ),
    );
  sets
    .command('remove')
    .description('take one permission set away; the others stay')
    .argument('<user>', USER)
    .argument('<set>', 'apiName')
    .action(
      act((run, user, set) =>
        changeUser(run, user, (record) => {
          const held = setsOf(record);
          if (!held.includes(set)) return `${user} does not have ${set}.`;
          const body = { permissionSetApiNames: held.filter((one) => one !== set) };
          return { body, done: `Took ${set} from ${user}.` };
        }),
      ),
    );
  for (const [command, field, what] of [
    ['set-profile', 'profileApiName', 'profile'],
    ['set-role', 'roleApiName', 'role'],
  ] as const)
    users
      .command(command)
      .description(`give a user another ${what}`)
      .argument('<user>', USER)
      .argument(`<${what}>`, what === 'role' ? 'apiName, or - for none' : 'apiName')
      .action(
        act((run, user, name) =>
          changeUser(run, user, (record) => {
            const value = name === '-' ? null : name;
            if ((record[field] ?? null) === value) return `The ${what} of ${user} is ${name} already.`;
            return { body: { [field]: value }, done: `The ${what} of ${user} is ${value ?? 'none'} now.` };
          }),
        ),
      );
}

const setsOf = ({ permissionSetApiNames: sets }: DataRecord): string[] => (Array.isArray(sets) ? sets.map(String) : []);

interface UserChange {
  readonly body: Record<string, unknown>;
  /** A sentence for people. */
  readonly done: string;
}

const ATTEMPTS_MAX = 5;

/**
 * Changes a user by what is read of them, and again from the start after a concurrent change: `change` says what to
 * write, or in a sentence that there is nothing to do.
 */
async function changeUser(run: Run, user: string, change: (record: DataRecord) => UserChange | string): Promise<void> {
  const api = await run.api();
  const path = { objectApiName: 'User', id: await userIdOf(api, user) };
  for (let attempt = 1; ; attempt++) {
    const found = await api.call('data.records.get', { path });
    const next = change(recordOf(found.body));
    if (typeof next === 'string') {
      run.output.result(found, () => run.output.note(next));
      return;
    }
    const ifMatch = found.headers.get('etag') ?? undefined;
    const answer = await writeUser(
      run,
      () => api.call('data.records.update', { path, body: next.body, headers: { ifMatch } }, { what: 'The change' }),
      attempt < ATTEMPTS_MAX,
    );
    if (answer === null) continue;
    showChange(run, answer, () => run.output.line(run.output.terminal.pretty ? next.done : path.id));
    return;
  }
}

/** Null: a concurrent change won, and it is tried again. A key of the caller's own is for one request. */
async function writeUser<T>(run: Run, write: () => Promise<Answer<T>>, again: boolean): Promise<Answer<T> | null> {
  try {
    return await write();
  } catch (error) {
    const stale = error instanceof ApiFailure && error.code === 'ETAG_MISMATCH';
    if (!stale || !again || run.options.idempotencyKey !== undefined) throw error;
    return null;
  }
}
