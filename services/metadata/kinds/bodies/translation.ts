/** The file of a Translation. */
import { Type } from 'typebox';
import { type ComponentOf, componentType } from '../component.ts';
import { label, mapOf } from '../schema.ts';

/** Language, script, region and variants as they are usually spelt. */
export const LANGUAGE_TAG =
  '^[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*$';
const NAME = '[A-Za-z][A-Za-z0-9_]{0,39}';

export const TRANSLATION = componentType('Translation', {
  apiName: Type.String({
    pattern: LANGUAGE_TAG,
    maxLength: 35,
    description: 'BCP 47 language tag, such as `de` or `pt-BR`.',
  }),
  labels: mapOf(
    `^(?:${NAME}:)?${NAME}(?:\\.${NAME})?(?:#.{1,255})?$`,
    label('As people read it in this language.'),
    'Labels by the full name of what has them, with `#` and the part of it that is meant.',
  ),
});

export type TranslationComponent = ComponentOf<typeof TRANSLATION>;
