/** Identity of a command: the profile that the options choose and its tokens, or a token of the environment. */
import { environment } from '../environment.ts';
import { signInNeeded, usage } from '../failure.ts';
import type { TokenSource } from '../http/api.ts';
import { parseBaseUrl } from '../http/transport.ts';
import { refresh } from './oauth.ts';
import type { Config, Credentials, Profile, Store } from './store.ts';

/** A token that ends within this time is renewed before it is used. */
const SPARE_SECONDS = 30;

export interface SessionOptions {
  baseUrl?: string | undefined;
  profile?: string | undefined;
}

export interface Session extends TokenSource {
  readonly baseUrl: string;
  /** null with a token of the environment, or without a sign-in. */
  readonly profileName: string | null;
  /** Tells people apart where requests are remembered. */
  person(): Promise<string>;
}

/** The name of the profile that options, environment and configuration choose. */
export const chosenProfile = (options: SessionOptions, config: Config): string | null =>
  options.profile ?? environment.profile() ?? config.current;

/** Finds the session for a command. Nothing is sent yet, and a missing sign-in shows when a token is asked for. */
export async function openSession(options: SessionOptions, store: Store): Promise<Session> {
  const address = options.baseUrl ?? environment.baseUrl();
  const wanted = address === undefined ? undefined : parseBaseUrl(address);
  const token = environment.token();
  if (token !== undefined) return tokenSession(token, options, wanted, store);
  const config = await store.config();
  const named = options.profile ?? environment.profile();
  if (named !== undefined && !config.profiles[named])
    throw signInNeeded(`There is no profile ${named}.`, 'erp profiles list shows those there are.');
  const name = named ?? profileFor(config, wanted);
  const profile = name === null ? undefined : config.profiles[name];
  // A token goes to the platform that gave it and to no other address.
  if (profile && wanted !== undefined && profile.baseUrl !== wanted)
    throw usage(
      `Profile ${name} belongs to ${profile.baseUrl}, not to ${wanted}.`,
      `Sign in there: erp login --base-url ${wanted} --profile <name>`,
    );
  if (name !== null && profile) return profileSession(name, profile, store);
  if (wanted === undefined)
    throw signInNeeded('You are not signed in.', 'erp login --base-url https://erp.example.com');
  return {
    baseUrl: wanted,
    profileName: null,
    person: () => Promise.resolve('nobody'),
    token: () => Promise.reject(signInNeeded(`You are not signed in to ${wanted}.`, `erp login --base-url ${wanted}`)),
  };
}

/** The current profile; with a base URL, the current or only one that belongs there. */
function profileFor(config: Config, wanted: string | undefined): string | null {
  const { current, profiles } = config;
  if (wanted === undefined || (current !== null && profiles[current]?.baseUrl === wanted)) return current;
  const there = Object.keys(profiles).filter((name) => profiles[name]?.baseUrl === wanted);
  if (there.length > 1) throw usage(`Several profiles belong to ${wanted}: ${there.join(', ')}.`, 'Choose: --profile');
  return there[0] ?? null;
}

async function tokenSession(
  token: string,
  options: SessionOptions,
  wanted: string | undefined,
  store: Store,
): Promise<Session> {
  if (options.profile !== undefined)
    throw usage('--profile and ERP_TOKEN cannot be combined.', 'Unset ERP_TOKEN to work with a profile.');
  const named = environment.profile();
  const baseUrl = wanted ?? (named === undefined ? undefined : (await store.config()).profiles[named]?.baseUrl);
  if (baseUrl === undefined) throw usage('ERP_TOKEN needs ERP_BASE_URL or --base-url.');
  return {
    baseUrl,
    profileName: null,
    onRefusal: 'ERP_TOKEN is refused: set a new one, or unset it and sign in with erp login.',
    person: () => Promise.resolve(subjectOf(token)),
    token: (renew) =>
      renew
        ? Promise.reject(signInNeeded('The token in ERP_TOKEN has expired.', 'Set a new one.'))
        : Promise.resolve(token),
  };
}

function profileSession(name: string, profile: Profile, store: Store): Session {
  const fresh = (found: Credentials): boolean => found.expiresAt - SPARE_SECONDS > Date.now() / 1000;
  let used: string | undefined;
  const renewed = (renew: boolean): Promise<string> =>
    store.locked(async () => {
      // Another process may have been faster: its tokens are good.
      const found = await store.credentials(name);
      if (!found) throw signInNeeded(`Profile ${name} is signed out.`, `erp login --profile ${name}`);
      if (fresh(found) && !(renew && found.accessToken === used)) return found.accessToken;
      if (!found.refreshToken) throw signInNeeded('The sign-in has expired.', `erp login --profile ${name}`);
      const next = await refresh(profile.baseUrl, found, `erp login --profile ${name}`);
      await store.saveCredentials(name, next);
      return next.accessToken;
    });
  return {
    baseUrl: profile.baseUrl,
    profileName: name,
    onRefusal: `Sign in: erp login --profile ${name}`,
    person: () => Promise.resolve(`${profile.tenant.id}/${profile.user.id}`),
    async token(renew = false) {
      const found = renew ? null : await store.credentials(name);
      used = found && fresh(found) ? found.accessToken : await renewed(renew);
      return used;
    },
  };
}

/** The subject that an access token names; not verified, and used to keep requests of several people apart. */
function subjectOf(token: string): string {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    if (typeof claims === 'object' && claims !== null && 'sub' in claims && 'tenant_id' in claims)
      return `${claims.tenant_id}/${claims.sub}`;
  } catch {
    // An opaque token: all of them count as one person.
  }
  return 'token';
}
