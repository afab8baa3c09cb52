/** Titles and texts of notifications, in the languages that there are: another one is a file of this folder and a line here. */
import {
  NOTIFICATION_ACTIONS,
  type NotificationAction,
  PLATFORM_TYPES,
  type PlatformType,
} from '../../../contracts/notifications.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Notice } from '../../../lib/notice.ts';
import { languageFor } from '../../../lib/values/languages.ts';
import { nameInMail } from '../../../lib/values/mail-address.ts';
import { spanIn } from '../../../lib/values/words-of-time.ts';
import { de } from './de.ts';
import { en } from './en.ts';
import type { NotificationText } from './language.ts';

const NAME_MAX_CHARS = 80;

export const isPlatformType = (type: string): type is PlatformType => PLATFORM_TYPES.some((name) => name === type);

const languageOf = (locale: string | null) => languageFor([en, de], locale);

/** With its label for a recipient with this locale. */
export function actionIn(locale: string | null, { kind, id }: NonNullable<Notice['action']>): NotificationAction {
  const { operationId, parameter } = NOTIFICATION_ACTIONS[kind];
  return { label: languageOf(locale).actions[kind], operationId, params: { [parameter]: id } };
}

/** For a recipient with this locale. Plain text: nothing of the data is markup. `actor`: display name. */
export function textOf({ type, data }: Notice, locale: string | null, actor: string | null): NotificationText {
  if (data['title'] !== undefined) return { title: String(data['title']), body: String(data['body'] ?? '') };
  const value = (name: string): string => nameInMail(String(data[name] ?? ''), NAME_MAX_CHARS);
  const language = languageOf(locale);
  const values = {
    object: value('object'),
    transition: value('transition'),
    succeeded: value('succeeded'),
    failed: value('failed'),
    agent: value('agent'),
    webhook: value('webhook'),
    event: value('event'),
    when: spanOf(language.tag, data),
    repeats: data['repeats'] !== undefined,
    uninvited: data['uninvited'] !== undefined,
    actor: actor === null ? null : nameInMail(actor, NAME_MAX_CHARS),
  };
  const { title, body } = (isPlatformType(type) ? language.types[type] : language.effect)(values);
  return { title: title.slice(0, LIMITS.notification_title_max_chars).toWellFormed(), body };
}

/** In the time zone of the event, by which all who are invited speak of it. */
function spanOf(language: string, { startAt, endAt, timezone }: Notice['data']): string {
  if (startAt === undefined) return '';
  const moment = (at: unknown): number => Date.parse(String(at));
  return spanIn(language, timezone === undefined ? null : String(timezone), moment(startAt), moment(endAt));
}
