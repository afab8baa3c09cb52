/** What a notification template says to a user. Source: docs/reference/metadata.md#types. */
import type { DataActions } from '../../../contracts/data.ts';
import { columnSql } from '../../../lib/expression/formulas.ts';
import { typeOfField } from '../../../lib/expression/values.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { fieldsOfTemplate, filledTemplate } from '../../../lib/notification-template.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import { labelsFor, tagsFor } from '../../../lib/schema/labels.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, NotificationTemplateMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { nameInMail } from '../../../lib/values/mail-address.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { reachSql, schemaOf, table } from '../sql.ts';
import type { Tenants } from '../tenants.ts';
import { timezoneOf, VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { checkedRow } from './versions.ts';

type Fill = DataActions['data.templates.fill'];

const VALUE_MAX_CHARS = 200;

/** Values as JSON has them, as text; null: the user cannot read the record. */
type ValuesRow = Versions & { readonly values: Readonly<Record<string, string | null>> | null };

/** Title and text in the language of the user, with what they can read at this moment; null: there is no such template. */
export const fillTemplate = (
  database: Database,
  tenants: Tenants,
  { tenantId, userId, record, template, actor }: Fill['params'],
): Promise<Fill['result']> =>
  tenants.withView(tenantId, userId, async (view) => {
    const object = ownEntry(view.snapshot.objects, record.objectApiName);
    const found = ownEntry(view.snapshot.notificationTemplates, `${record.objectApiName}.${template}`);
    const { title, body, language } = found ? textIn(found, view) : NOTHING;
    const access = ownEntry(view.access.objects, record.objectApiName);
    const fields = fieldsOfTemplate(`${title} ${body}`).flatMap((name) =>
      access?.fields[name]?.read ? [requireField(access.object, name)] : [],
    );
    const statement = access ? valuesStatement(view, access.object, record.id, fields) : versionsStatement(view);
    const row = checkedRow(view, await database.tenant(tenantId, (tx) => tx.all<ValuesRow>(statement)));
    const shown = new Map(
      fields.map((field) => {
        const value = row.values?.[field.apiName] ?? null;
        const text = value === null || !object ? '' : shownValue(value, field, object, view, language);
        return [field.apiName, nameInMail(text, VALUE_MAX_CHARS)];
      }),
    );
    const shownFor = (name: string | null): string =>
      name === null ? nameInMail(actor ?? '', VALUE_MAX_CHARS) : (shown.get(name) ?? '');
    const filled = filledTemplate(title, shownFor).trim();
    if (filled === '') return null;
    return {
      title: filled.slice(0, LIMITS.notification_title_max_chars).toWellFormed(),
      body: filledTemplate(body, shownFor).slice(0, LIMITS.notification_body_max_chars).toWellFormed(),
    };
  });

interface LanguageText {
  readonly title: string;
  readonly body: string;
  /** BCP 47. */
  readonly language: string;
}

const NOTHING: LanguageText = { title: '', body: '', language: 'en' };

/** In the language of the user, else of the tenant, else English, else the first one. */
function textIn({ texts }: NotificationTemplateMeta, { access, snapshot }: View): LanguageText {
  const byTag = new Map(Object.entries(texts).map(([tag, text]) => [tag.toLowerCase(), { ...text, language: tag }]));
  const wanted = [access.principal.locale, snapshot.tenant.locale, 'en'].flatMap((locale) =>
    locale === null ? [] : tagsFor(locale.toLowerCase()),
  );
  for (const tag of wanted) {
    const found = byTag.get(tag);
    if (found) return found;
  }
  const [first = NOTHING] = byTag.values();
  return first;
}

const isDecimal = (text: string): text is `${number}` => /^-?\d+(?:\.\d+)?$/.test(text);

function shownValue(value: string, field: FieldMeta, object: ObjectMeta, view: View, language: string): string {
  switch (typeOfField(valueTypeName(field))) {
    case 'number': {
      if (!isDecimal(value)) return value;
      const digits = value.split('.')[1]?.length ?? 0;
      const format = new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
      return format.format(value);
    }
    case 'date':
      return dateText(value, language, { dateStyle: 'medium', timeZone: 'UTC' });
    case 'dateTime':
      return dateText(value, language, { dateStyle: 'medium', timeStyle: 'short', timeZone: timezoneOf(view) });
    default: {
      const option = field.picklistValues?.find((one) => one.value === value);
      return option ? labelsFor(view.snapshot, language).ofValue(object.apiName, field, value, option.label) : value;
    }
  }
}

function dateText(value: string, language: string, options: Intl.DateTimeFormatOptions): string {
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? value : new Intl.DateTimeFormat(language, options).format(date);
}

const versionsStatement = ({ tenantId }: View): Statement =>
  new Sql().statement(`SELECT ${VERSION_COLUMNS}, NULL AS values FROM ${schemaOf(tenantId)}._state state`);

function valuesStatement(view: View, object: ObjectMeta, id: string, fields: readonly FieldMeta[]): Statement {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const names = fields.map(({ apiName }) => literal(apiName)).join(', ');
  const values = fields.map((field) => `to_jsonb(${columnSql(field, 't')}) #>> '{}'`).join(', ');
  return sql.statement(`SELECT ${VERSION_COLUMNS}, found.values FROM ${schema}._state state LEFT JOIN (
      SELECT jsonb_object(ARRAY[${names}]::text[], ARRAY[${values}]::text[]) AS values FROM ${table(schema, object.apiName)} t
      WHERE t."id" = ${sql.bind(id, 'uuid')} AND ${reachSql(view, sql, object.apiName, 'read', 't')}) found ON true`);
}
