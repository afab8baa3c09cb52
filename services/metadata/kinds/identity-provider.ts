/** IdentityProvider: an OpenID provider at which users of the tenant's mail domains sign in; never its secret. */
import { Type } from 'typebox';
import { domainName } from '../../../lib/values/mail-domains.ts';
import { componentsOf, componentType, findComponent } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { API_NAME, apiName, group, label, optional, setOf, shownFlag, shownText } from './schema.ts';

const PROVIDERS_MAX = 20;
const DOMAINS_MAX = 100;
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

export const IDENTITY_PROVIDER = componentType('IdentityProvider', {
  apiName: apiName('Stable name.'),
  label: label('As users see it when they sign in.'),
  active: shownFlag(true, 'Users sign in with it.'),
  issuer: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'Its issuer identifier, an https address as the provider itself writes it (OpenID Connect Discovery).',
  }),
  clientId: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: '^[\\x21-\\x7e]+$',
    description: 'By which the provider knows the platform. Its secret is no configuration.',
  }),
  domains: setOf(
    Type.String({ minLength: 1, maxLength: 253 }),
    'Mail domains whose users it speaks for; it counts for those that are verified for the tenant.',
    DOMAINS_MAX,
  ),
  usernameClaim: shownText('email', {
    pattern: '^[A-Za-z][A-Za-z0-9_.:/-]{0,99}$',
    description: 'The claim that holds the username.',
  }),
  createUsers: optional(
    group(
      {
        profileApiName: Type.String({ pattern: API_NAME, description: 'Profile of a created user.' }),
        roleApiName: optional(Type.String({ pattern: API_NAME, description: 'Role of a created user.' })),
      },
      'Defaults for users created at their first sign-in; without it none are created.',
    ),
  ),
  passwordSignIn: shownFlag(true, 'Users of the domains may also sign in without the provider.'),
});

/** The problem with an issuer identifier; null when it is valid (OpenID Connect Discovery section 2). */
function issuerProblem(issuer: string): string | null {
  const url = URL.parse(issuer);
  if (!url || (url.href !== issuer && url.href !== `${issuer}/`)) return 'Not an address in its normal form.';
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && LOOPBACK.has(url.hostname)))
    return 'The address begins with https://.';
  if (url.username || url.password || url.search || url.hash) return 'The address has no user, query or fragment.';
  return null;
}

export const identityProvider = defineKind({
  ...IDENTITY_PROVIDER,
  memberFormat: '<IdentityProvider>',
  reversible: true,
  dependsOn: ['Role', 'Profile'],

  references({ createUsers }) {
    if (!createUsers) return [];
    const { profileApiName, roleApiName } = createUsers;
    const found: Reference[] = [{ type: 'Profile', fullName: profileApiName, pointer: '/createUsers/profileApiName' }];
    if (roleApiName !== undefined)
      found.push({ type: 'Role', fullName: roleApiName, pointer: '/createUsers/roleApiName' });
    return found;
  },

  check(component, context) {
    const { issuer, domains, active } = component.body;
    const invalid = (pointer: string, message: string): void =>
      context.problem('YAML_SCHEMA_INVALID', component, pointer, message);
    const problem = issuerProblem(issuer);
    if (problem) invalid('/issuer', problem);
    const before = findComponent(context.before, IDENTITY_PROVIDER, component.body.apiName)?.body;
    const moved = before && (['issuer', 'clientId'] as const).find((name) => before[name] !== component.body[name]);
    if (active && moved)
      context.warning(
        'WITHOUT_EFFECT',
        component,
        `/${moved}`,
        'The secret that was set is for the earlier issuer and client id and is not sent to another one: the operator of the platform has to set it again.',
      );
    if (domains.length === 0) invalid('/domains', 'It speaks for one domain at least.');
    for (const [i, domain] of domains.entries()) {
      const name = domainName(domain);
      if (name !== domain)
        invalid(
          `/domains/${i}`,
          name === null ? 'Not a domain, such as example.com.' : `The domain is written ${name}.`,
        );
      else if (active && context.verifiedDomains?.has(domain) === false)
        context.warning(
          'DOMAIN_NOT_VERIFIED',
          component,
          `/domains/${i}`,
          `${domain} is not verified for this tenant: its users cannot sign in with the provider until the operator of the platform adds it.`,
        );
    }
  },

  checkAll(context: CheckContext) {
    const providers = componentsOf(context.after, IDENTITY_PROVIDER);
    const of = new Map<string, string>();
    for (const provider of providers) {
      if (!provider.body.active) continue;
      for (const [i, domain] of provider.body.domains.entries()) {
        const other = of.get(domain);
        if (other === undefined) of.set(domain, provider.fullName);
        else context.problem('NAME_CONFLICT', provider, `/domains/${i}`, `${other} speaks for ${domain} already.`);
      }
    }
    const last = providers.at(-1);
    if (last && providers.length > PROVIDERS_MAX)
      context.problem('LIMIT_EXCEEDED', last, '', `A tenant may have at most ${PROVIDERS_MAX} identity providers.`, {
        details: { max: PROVIDERS_MAX },
      });
  },

  compile(component, draft) {
    const { apiName: name, label: text, active, issuer, clientId, domains, usernameClaim } = component.body;
    const { createUsers, passwordSignIn } = component.body;
    draft.identityProviders[name] = {
      apiName: name,
      label: text,
      active,
      issuer,
      clientId,
      domains,
      usernameClaim,
      createUsers: createUsers
        ? { profileApiName: createUsers.profileApiName, roleApiName: createUsers.roleApiName ?? null }
        : null,
      passwordSignIn,
    };
  },
});
