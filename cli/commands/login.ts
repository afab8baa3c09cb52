/** Sign-in and the profiles that keep it: `login`, `logout`, `profiles`. */
import openInBrowser from 'open';
import { OPERATIONS } from '../../contracts/operations.ts';
import { act, type Program, type Run } from '../command.ts';
import { environment } from '../environment.ts';
import { Failure, signInNeeded, usage } from '../failure.ts';
import { Api } from '../http/api.ts';
import { Intentions } from '../http/intentions.ts';
import { parseBaseUrl } from '../http/transport.ts';
import { plain } from '../output/table.ts';
import { counted } from '../output/values.ts';
import { discover, revoke } from '../profiles/oauth.ts';
import { chosenProfile } from '../profiles/session.ts';
import { signInWithBrowser, signInWithDevice } from '../profiles/sign-in.ts';
import type { Config, Credentials, Profile } from '../profiles/store.ts';

const PROFILE_NAME = /^[A-Za-z0-9][\w.@+-]{0,63}$/;
/** Scopes for all commands: those of existing operations, and a refresh token to stay signed in. */
const SCOPES_DEFAULT = [
  ...new Set(OPERATIONS.flatMap(({ scopes }) => (typeof scopes === 'string' ? [] : scopes))),
  'offline_access',
].join(' ');

export function addLogin(program: Program): void {
  program
    .command('login')
    .description('sign in, in a browser of this machine or with a code in any browser')
    .option('--device', 'show a code to type in a browser anywhere, for machines without one')
    .option('--no-browser', 'print the address in the place of opening it')
    .option('--step-up', 'sign in anew with two factors, for what needs a recent sign-in')
    .option('--scope <scopes>', 'what the sign-in may be used for, separated by blanks (default: everything)')
    .action(act((run, options) => login(run, options)));
  program
    .command('logout')
    .description('end the sign-in of a profile, here and at the platform')
    .option('--local', 'forget the tokens here alone, without asking the platform to end them')
    .action(act((run, options) => logout(run, options.local === true)));
  program
    .command('token')
    .description('print an access token of the sign-in that is used, for programs of your own')
    .action(act(printToken));
  addProfiles(program);
}

function addProfiles(program: Program): void {
  const profiles = program.command('profiles').description('sign-ins to work with');
  profiles
    .command('list')
    .description('list the profiles; * marks the one that is used')
    .action(act((run) => list(run)));
  profiles
    .command('use')
    .description('work with this profile from now on')
    .argument('<name>')
    .action(
      act((run, name) =>
        run.store.locked(async () => {
          const config = await run.store.config();
          known(config, name);
          await run.store.saveConfig({ ...config, current: name });
        }),
      ),
    );
  profiles
    .command('remove')
    .description('sign out and forget the profile')
    .argument('<name>')
    .option('--local', 'forget it here alone, without asking the platform to end the sign-in')
    .action(
      act(async (run, name, options) => {
        await signOut(run, name, options.local === true);
        await run.store.locked(async () => {
          const { current, profiles: all } = await run.store.config();
          const { [name]: _, ...others } = all;
          await run.store.saveConfig({ current: current === name ? null : current, profiles: others });
        });
        run.output.note(`Profile ${name} is removed.`);
      }),
    );
}

interface LoginOptions {
  device?: true | undefined;
  browser: boolean;
  stepUp?: true | undefined;
  scope?: string | undefined;
}

async function login(run: Run, options: LoginOptions): Promise<void> {
  const { output, store } = run;
  const config = await store.config();
  const named = run.options.profile ?? environment.profile();
  if (named !== undefined && !PROFILE_NAME.test(named))
    throw usage('A profile name has up to 64 letters, digits, and . _ @ + -, and begins with a letter or digit.');
  if (options.device && options.stepUp) throw usage('--step-up needs a browser on this machine, and no --device.');
  const baseUrl = addressFor(run, config);
  if (environment.token() !== undefined)
    output.warn('ERP_TOKEN is set, and commands use it instead of this sign-in until it is unset.');
  const server = await discover(baseUrl);
  const scope = options.scope ?? SCOPES_DEFAULT;
  const credentials = options.device
    ? await signInWithDevice({
        server,
        scope,
        show({ url, completeUrl, userCode, expiresIn }) {
          const code = output.terminal.paintError('bold', plain(userCode));
          output.note(`Open ${plain(url)} in a browser and type the code ${code}`);
          if (completeUrl) output.note(`or open ${plain(completeUrl)}`);
          output.note(`The code is good for ${counted(Math.round(expiresIn / 60), 'minute', 'minutes')}. Waiting…`);
        },
      })
    : await signInWithBrowser({
        server,
        scope,
        stepUp: options.stepUp === true,
        open: (url) => openBrowser(run, url, options.browser),
      });
  await keep(run, baseUrl, credentials, named);
}

/** The address to sign in at: given, or that of the profile that is signed in anew. */
function addressFor(run: Run, config: Config): string {
  const given = run.options.baseUrl ?? environment.baseUrl();
  if (given !== undefined) return parseBaseUrl(given);
  const name = chosenProfile(run.options, config);
  const profile = name === null ? undefined : config.profiles[name];
  if (!profile) throw usage('Where to sign in?', 'erp login --base-url https://erp.example.com');
  return profile.baseUrl;
}

async function openBrowser({ output }: Run, url: URL, wanted: boolean): Promise<void> {
  if (wanted && !environment.unattended()) {
    output.note('Your browser opens for the sign-in. If it does not, open this address:');
    const child = await openInBrowser(url.href).catch(() => null);
    child?.once('error', () => undefined);
  } else output.note('Open this address in a browser of this machine:');
  output.note(url.href);
}

/** Keeps the tokens under a profile of the person who has signed in. */
async function keep(run: Run, baseUrl: string, credentials: Credentials, named: string | undefined): Promise<void> {
  const { store, output } = run;
  const api = new Api({
    baseUrl,
    tokens: { token: () => Promise.resolve(credentials.accessToken) },
    intentions: new Intentions(store, { person: () => Promise.resolve('nobody'), resume: true }),
    timeoutMs: run.options.timeout * 1000,
    dryRun: false,
    note: (text) => output.note(text),
    trace: (text) => output.trace(text),
  });
  const answer = await api.call('me.identity.get', {});
  const { user, tenant } = answer.body;
  const profile: Profile = {
    baseUrl,
    user: { id: user.id, username: user.username },
    tenant: { id: tenant.id, name: tenant.name },
  };
  const { name, replaced } = await store.locked(async () => {
    const config = await store.config();
    const name = named ?? nameFor(config, profile);
    const before = config.profiles[name];
    const old = before ? await store.credentials(name) : null;
    await store.saveCredentials(name, credentials);
    await store.saveConfig({ current: name, profiles: { ...config.profiles, [name]: profile } });
    return { name, replaced: before && old ? { baseUrl: before.baseUrl, credentials: old } : null };
  });
  // The replaced sign-in would remain as an unused connection.
  if (replaced)
    await revoke(replaced.baseUrl, replaced.credentials).catch(() =>
      output.warn('The earlier sign-in of this profile could not be ended; its token was forgotten here.'),
    );
  output.result(answer, () =>
    output.line(plain(`Signed in to ${tenant.name} as ${user.displayName} <${user.username}>, profile ${name}.`)),
  );
}

/** The profile of this very person, or a name that is free. */
function nameFor({ profiles }: Config, { baseUrl, user, tenant }: Profile): string {
  for (const [name, found] of Object.entries(profiles))
    if (found.baseUrl === baseUrl && found.user.id === user.id && found.tenant.id === tenant.id) return name;
  const own =
    user.username
      .replace(/[^\w.@+-]/g, '-')
      .replace(/^[^A-Za-z0-9]+/, '')
      .slice(0, 40) || 'user';
  const candidates = ['default', own, `${own}-${new URL(baseUrl).hostname}`.replace(/[^\w.@+-]/g, '-').slice(0, 60)];
  const free = candidates.find((name) => !profiles[name]);
  if (!free) throw usage(`The profiles ${candidates.join(', ')} exist.`, 'Name another one: --profile');
  return free;
}

/** A printed token acts as the person: on a terminal, where others may see it, a warning says so. */
async function printToken({ output, session }: Run): Promise<void> {
  const accessToken = await (await session()).token();
  if (process.stdout.isTTY) output.warn('This token acts as you until it expires. Keep it secret.');
  output.value({ accessToken }, () => output.line(accessToken));
}

async function logout(run: Run, local: boolean): Promise<void> {
  const name = chosenProfile(run.options, await run.store.config());
  if (name === null) throw signInNeeded('You are not signed in.');
  await signOut(run, name, local);
  run.output.note(`Profile ${name} is signed out.`);
}

/** Ends the grant at the platform, then forgets its tokens. */
async function signOut(run: Run, name: string, local: boolean): Promise<void> {
  await run.store.locked(async () => {
    const { baseUrl } = known(await run.store.config(), name);
    const credentials = await run.store.credentials(name);
    if (!credentials) return;
    if (!local)
      await revoke(baseUrl, credentials).catch((error: unknown) => {
        throw error instanceof Failure
          ? new Failure(error.code, error.exitCode, `The sign-in was not ended: ${error.message}`, {
              hint: 'Try again, or forget the tokens here alone with --local.',
            })
          : error;
      });
    await run.store.saveCredentials(name, null);
  });
}

function known(config: Config, name: string): Profile {
  const profile = config.profiles[name];
  if (!profile) throw signInNeeded(`There is no profile ${name}.`, 'erp profiles list shows those there are.');
  return profile;
}

async function list({ output, store, options }: Run): Promise<void> {
  const config = await store.config();
  const chosen = chosenProfile(options, config);
  const rows = await Promise.all(
    Object.entries(config.profiles).map(async ([name, { baseUrl, user, tenant }]) => {
      const credentials = await store.credentials(name);
      return { name, used: name === chosen, baseUrl, user, tenant, signedIn: credentials !== null };
    }),
  );
  output.value(rows, () => {
    if (!rows.length) output.note('There are no profiles yet: erp login --base-url https://erp.example.com');
    output.table(
      [
        { title: '' },
        { title: 'Profile' },
        { title: 'User' },
        { title: 'Tenant' },
        { title: 'Base URL' },
        { title: 'Signed in' },
      ],
      rows.map(({ name, used, baseUrl, user, tenant, signedIn }) => [
        used ? '*' : '',
        name,
        user.username,
        tenant.name,
        baseUrl,
        signedIn ? 'yes' : 'no',
      ]),
    );
  });
}
