/** TenantSettings: what holds for the whole tenant. */
import { isDeepStrictEqual } from 'node:util';
import { Type } from 'typebox';
import { OWN_MINIMUM } from '../../../contracts/ratelimit.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { RATE_LIMIT_NAMES, SECOND_FACTOR_POLICIES } from '../../../lib/schema/snapshot.ts';
import { isLocale } from '../../../lib/values/locale.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { componentType, findComponent, type State } from './component.ts';
import { checkLimits, limitsGroup, rateLimits } from './external-client.ts';
import { defineKind } from './kind.ts';
import { group, optional } from './schema.ts';

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'));

export const isCurrency = (text: string): boolean => CURRENCIES.has(text);

export const TENANT_SETTINGS = componentType('TenantSettings', {
  apiName: Type.Literal('General'),
  locale: Type.String({ maxLength: 35, description: 'BCP 47 language tag.' }),
  timezone: Type.String({ maxLength: 64, description: 'IANA time zone.' }),
  currency: Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217 code.' }),
  retention: optional(
    group(
      {
        auditDays: optional(
          Type.Integer({
            minimum: LIMITS.audit_retention_days,
            maximum: 3_660,
            description: 'Days the audit trail is kept.',
          }),
        ),
      },
      'How long what is kept.',
    ),
  ),
  rateLimits: optional(limitsGroup((limits) => limits)),
  secondFactor: optional(
    Type.Enum([...SECOND_FACTOR_POLICIES], {
      description:
        'Users who must sign in with a second factor: none, administrators of users or configuration, or all.',
    }),
  ),
});

/** Days that the audit trail is kept. */
export const auditDays = (state: State): number =>
  findComponent(state, TENANT_SETTINGS, 'General')?.body.retention?.auditDays ?? LIMITS.audit_retention_days;

/** They bind administrators as well: a deployer could otherwise let all users in, or keep all out. */
const DECIDED_BY_ACCESS_MANAGERS = {
  secondFactor: 'Deciding who needs a second factor',
  rateLimits: 'Narrowing the limits',
  retention: 'Deciding how long the audit trail is kept',
} as const;

export const tenantSettings = defineKind({
  ...TENANT_SETTINGS,
  memberFormat: 'General',
  reversible: true,
  check(component, context) {
    const { locale, timezone, currency } = component.body;
    const before = findComponent(context.before, TENANT_SETTINGS, 'General')?.body;
    if (context.acting?.actor.system.has('manageAccess') === false)
      for (const [name, what] of Object.entries(DECIDED_BY_ACCESS_MANAGERS))
        if (!isDeepStrictEqual(component.body[name], before?.[name]))
          context.problem('COMPONENT_PERMISSION_DENIED', component, `/${name}`, `${what} requires manageAccess.`);
    const invalid = (name: string, message: string): void =>
      context.problem('YAML_SCHEMA_INVALID', component, `/${name}`, message);
    checkLimits(component, component.body.rateLimits, context);
    for (const name of RATE_LIMIT_NAMES) {
      const min = Math.min(OWN_MINIMUM[name], context.ceilings?.[name] ?? OWN_MINIMUM[name]);
      if ((component.body.rateLimits?.[name] ?? min) < min)
        invalid(`rateLimits/${name}`, `${name} is at least ${min}, so that the settings can still be changed.`);
    }
    if (!isLocale(locale)) invalid('locale', 'Not a language tag such as en or pt-BR.');
    if (!isTimezone(timezone)) invalid('timezone', 'Not a time zone such as Europe/Berlin.');
    if (!isCurrency(currency)) invalid('currency', 'Not a currency code such as EUR.');
  },
  compile(component, draft) {
    const { locale, timezone, currency, secondFactor } = component.body;
    draft.secondFactor = secondFactor ?? null;
    draft.tenant = {
      ...draft.tenant,
      locale,
      timezone,
      currency,
      rateLimits: rateLimits(component.body.rateLimits),
    };
  },
});
