/** NotificationTemplate: what notifications of transitions and actions say, by language. */
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { typeOfField } from '../../../lib/expression/values.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { fieldsOfTemplate, readTemplate } from '../../../lib/notification-template.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { LANGUAGE_TAG } from './bodies/translation.ts';
import { type BodyOf, componentKey, componentType } from './component.ts';
import { schemaOf } from './expressions.ts';
import { defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { apiName, group, label, mapOf, optional, text } from './schema.ts';
import { fieldReference } from './screens.ts';

const TEMPLATES_PER_OBJECT_MAX = 50;
const LANGUAGES_MAX = 20;

const NOTIFICATION_TEMPLATE = componentType('NotificationTemplate', {
  apiName: apiName('Stable name, which effects give as `template`.'),
  object: apiName('The object whose records it is about.'),
  label: label('As administrators read it.'),
  texts: mapOf(
    LANGUAGE_TAG,
    group(
      {
        title: label('With placeholders `{actor}` and `{record.<Field>}`.', LIMITS.notification_title_max_chars),
        body: optional(text('With the same placeholders.', LIMITS.notification_body_max_chars)),
      },
      'Title and text in the language.',
    ),
    'By language, as BCP 47 language tags such as `de`.',
    LANGUAGES_MAX,
  ),
});

/** Every text with its pointer. */
const textsOf = ({ texts }: BodyOf<typeof NOTIFICATION_TEMPLATE>): { source: string; pointer: string }[] =>
  Object.entries(texts).flatMap(([language, { title, body = '' }]) => {
    const pointer = `/texts/${pointerPart(language)}`;
    return [
      { source: title, pointer: `${pointer}/title` },
      { source: body, pointer: `${pointer}/body` },
    ];
  });

export const notificationTemplate = defineKind({
  ...NOTIFICATION_TEMPLATE,
  memberFormat: '<Object>.<Template>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField'],

  references: (body): Reference[] => [
    { type: 'CustomObject', fullName: body.object, pointer: '/object' },
    ...textsOf(body).flatMap(({ source, pointer }) =>
      fieldsOfTemplate(source).flatMap((name) => fieldReference(body.object, name, pointer)),
    ),
  ],

  check(component, context) {
    const { body } = component;
    if (Object.keys(body.texts).length === 0)
      context.problem('YAML_SCHEMA_INVALID', component, '/texts', 'A template needs a text in at least one language.');
    const known = context.after.has(componentKey('CustomObject', body.object));
    const { fieldType: typeOf } = schemaOf(body.object, context);
    for (const { source, pointer } of textsOf(body)) {
      const { mistake } = readTemplate(source);
      if (mistake !== null)
        context.problem(
          'YAML_SCHEMA_INVALID',
          component,
          pointer,
          'Braces hold `{actor}` or `{record.<Field>}`; a brace that is to be shown is written twice.',
          { offset: mistake },
        );
      for (const name of known ? fieldsOfTemplate(source) : []) {
        const type = typeOf(name);
        if (type !== undefined && !isShown(type))
          context.problem('REFERENCE_INVALID', component, pointer, `${name} cannot be shown in a text.`, {
            remedy: 'Name fields of text, numbers, dates or picklists.',
          });
      }
    }
  },

  isAffected: ({ body }, changes) => changes.objects(CUSTOM_FIELD).has(body.object),

  checkAll: (context) =>
    checkPerObject(context, NOTIFICATION_TEMPLATE, 'notification templates', TEMPLATES_PER_OBJECT_MAX),

  compile({ fullName, body }, draft) {
    draft.notificationTemplates[fullName] = {
      texts: Object.fromEntries(
        Object.entries(body.texts).map(([language, { title, body: said = '' }]) => [language, { title, body: said }]),
      ),
    };
  },
});

/** Types whose values people read as one text. */
function isShown(type: Parameters<typeof typeOfField>[0]): boolean {
  const shown = typeOfField(type);
  const { relation, holdsFile } = fieldType(type);
  return (
    relation === undefined &&
    !holdsFile &&
    (shown === 'text' || shown === 'number' || shown === 'date' || shown === 'dateTime')
  );
}
