/**
 * Head of a file, checked before anything is created: the rules are those for an operator who creates a tenant
 * or sets its limits, since the author of the file is unknown.
 */
import { RATE_LIMIT_MAX } from '../../../contracts/ratelimit.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { RATE_LIMIT_NAMES } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { isLocale } from '../../../lib/values/locale.ts';
import { domainName } from '../../../lib/values/mail-domains.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { isCurrency } from '../../../services/metadata/kinds/tenant-settings.ts';
import {
  isLine,
  isTenantKey,
  isTenantName,
  TENANT_KEY_IS,
  TENANT_NAME_IS,
} from '../../../services/metadata/tenants.ts';
import { FORMAT, FORMAT_VERSION, type Head, MovingRefused } from './items.ts';

const LINE_MAX_CHARS = 100;
const DOMAINS_MAX = 1_000;
/** Of PostgreSQL's integer. */
const VERSION_MAX = 2 ** 31 - 1;

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown, max = Number.MAX_SAFE_INTEGER): boolean =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max;

const isLimits = (value: unknown): boolean =>
  isObject(value) &&
  Object.entries(value).every(
    ([name, limit]) =>
      RATE_LIMIT_NAMES.some((known) => known === name) &&
      (limit === null || (isCount(limit, RATE_LIMIT_MAX) && limit !== 0)),
  );

const isColumns = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every((names) => Array.isArray(names) && names.every(isText));

const isCounter = (value: unknown): boolean =>
  isObject(value) &&
  isText(value['object']) &&
  isText(value['field']) &&
  isCount(value['value']) &&
  typeof value['given'] === 'boolean';

const isDomains = (value: unknown): boolean =>
  Array.isArray(value) && value.length <= DOMAINS_MAX && value.every((one) => isText(one) && domainName(one) === one);

const LIMITS_ARE = `of ${RATE_LIMIT_NAMES.join(', ')}, each null or an integer from 1`;

/** Throws MovingRefused with all that is wrong. */
export function headOf(value: unknown): Head {
  if (!isObject(value) || value['format'] !== FORMAT || typeof value['formatVersion'] !== 'number')
    throw new MovingRefused('The file is no export of a tenant. Nothing was imported.');
  if (value['formatVersion'] > FORMAT_VERSION)
    throw new MovingRefused(
      `The file has the format ${value['formatVersion']}, and this version of the platform reads ${FORMAT_VERSION} at most: ` +
        'upgrade the platform. Nothing was imported.',
    );
  const tenant = isObject(value['tenant']) ? value['tenant'] : {};
  const audit = isObject(value['audit']) ? value['audit'] : {};
  const { locale, timezone, currency } = tenant;
  const rules: readonly (readonly [name: string, holds: boolean, what: string])[] = [
    ['exportedAt', isText(value['exportedAt']) && !Number.isNaN(Date.parse(value['exportedAt'])), 'a time'],
    ['tenantSchemaVersion', isCount(value['tenantSchemaVersion'], VERSION_MAX), 'a number'],
    [
      'metadataVersion',
      isCount(value['metadataVersion'], VERSION_MAX) && value['metadataVersion'] !== 0,
      'a number from 1',
    ],
    ['tenant.id', isText(tenant['id']) && isUuid(tenant['id']), 'an id'],
    ['tenant.key', isTenantKey(tenant['key']), TENANT_KEY_IS],
    ['tenant.name', isTenantName(tenant['name']), TENANT_NAME_IS],
    ['tenant.region', isLine(tenant['region'], LINE_MAX_CHARS), 'a line'],
    ['tenant.edition', isLine(tenant['edition'], LINE_MAX_CHARS), 'a line'],
    ['tenant.sandbox', typeof tenant['sandbox'] === 'boolean', 'true or false'],
    ['tenant.locale', isText(locale) && isLocale(locale), 'a language tag such as en-US'],
    ['tenant.timezone', isText(timezone) && isTimezone(timezone), 'a time zone such as Europe/Berlin'],
    ['tenant.currency', isText(currency) && isCurrency(currency), 'a currency code such as EUR'],
    ['tenant.rateLimits', isLimits(tenant['rateLimits']), LIMITS_ARE],
    ['tenant.operatorLimits', isLimits(tenant['operatorLimits']), LIMITS_ARE],
    ['audit', isCount(audit['position']) && isText(audit['hash']), 'a position with its hash'],
    ['domains', isDomains(value['domains']), `${DOMAINS_MAX} mail domains at most, as example.com`],
    ['counters', Array.isArray(value['counters']) && value['counters'].every(isCounter), 'numbers of fields'],
    ['columns', isColumns(value['columns']), 'names by part'],
  ];
  const wrong = rules.filter(([, holds]) => !holds).map(([name, , what]) => `${name} must be ${what}.`);
  if (wrong.length > 0)
    throw new MovingRefused(['The file does not describe a tenant.', ...wrong, 'Nothing was imported.'].join(' '));
  return value as unknown as Head;
}
