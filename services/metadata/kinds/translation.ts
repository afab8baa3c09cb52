/** Translation: the labels of a tenant in another language. */
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { PLURAL, type TranslatedType } from '../../../lib/schema/labels.ts';
import { isLocale } from '../../../lib/values/locale.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { CUSTOM_OBJECT } from './bodies/custom-object.ts';
import { LAYOUT } from './bodies/layout.ts';
import { LIST_VIEW } from './bodies/list-view.ts';
import { RECORD_TYPE } from './bodies/record-type.ts';
import { STATE_MODEL } from './bodies/state-model.ts';
import { TRANSLATION, type TranslationComponent } from './bodies/translation.ts';
import { VALUE_SET } from './bodies/value-set.ts';
import { type BodyOf, type ComponentType, componentKey, componentsOf, findComponent, type State } from './component.ts';
import { CUSTOM_ACTION } from './custom-action.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

const TRANSLATIONS_MAX = 50;

/** Everything that can have a label, and what of it. */
const TRANSLATED: readonly Translated[] = [
  translated(CUSTOM_OBJECT, () => [PLURAL]),
  translated(CUSTOM_FIELD, ({ picklist }, state) =>
    picklist?.valueSet === undefined ? valuesOf(picklist?.values) : valuesIn(picklist.valueSet, state),
  ),
  { ...translated(VALUE_SET, ({ values }) => valuesOf(values)), partsOnly: true },
  translated(RECORD_TYPE),
  { ...translated(STATE_MODEL, ({ transitions = [] }) => transitions.map(({ key }) => key)), partsOnly: true },
  translated(CUSTOM_ACTION),
  translated(LAYOUT, ({ sections, relatedLists = [] }) => [
    ...sections.map((section) => section.label),
    ...relatedLists.flatMap(({ label }) => label ?? []),
  ]),
  translated(LIST_VIEW),
];

interface Translated {
  readonly type: ComponentType;
  /** The names of parts with labels of their own; null: there is no such component. */
  readonly partsOf: (fullName: string, state: State) => readonly string[] | null;
  /** Its own label is never shown. */
  readonly partsOnly?: true;
}

function translated<T extends ComponentType & { readonly type: TranslatedType }>(
  type: T,
  partsOf: (body: BodyOf<T>, state: State) => readonly string[] = () => [],
): Translated {
  return {
    type,
    partsOf: (fullName, state) => {
      const component = findComponent(state, type, fullName);
      return component ? partsOf(component.body, state) : null;
    },
  };
}

const valuesOf = (values: readonly { readonly value: string }[] = []): string[] => values.map(({ value }) => value);

const valuesIn = (valueSet: string, state: State): string[] =>
  valuesOf(findComponent(state, VALUE_SET, valueSet)?.body.values);

interface Key {
  /** null: whatever has this name. */
  readonly type: string | null;
  readonly fullName: string;
  readonly part: string | null;
}

/** `<Type>:<fullName>#<part>`; only the full name must be there. */
function keyOf(text: string): Key {
  const hash = text.indexOf('#');
  const name = hash < 0 ? text : text.slice(0, hash);
  const colon = name.indexOf(':');
  return {
    type: colon < 0 ? null : name.slice(0, colon),
    fullName: name.slice(colon + 1),
    part: hash < 0 ? null : text.slice(hash + 1),
  };
}

const meant = ({ type }: Key): readonly Translated[] =>
  TRANSLATED.filter((one) => type === null || one.type.type === type);

function isThere(key: Key, state: State): boolean {
  const { type, fullName, part } = key;
  const [object = '', field] = fullName.split('.');
  const builtIn = field === undefined ? object : field;
  if (part === null && (type ?? 'CustomField') === 'CustomField' && SYSTEM_FIELD_NAMES.has(builtIn))
    // `name` has a label of its own on every object.
    return field === undefined ? builtIn !== 'name' : findComponent(state, CUSTOM_OBJECT, object) !== undefined;
  return meant(key).some(({ partsOf, partsOnly }) => {
    const parts = partsOf(fullName, state);
    return parts !== null && (part === null ? !partsOnly : parts.includes(part));
  });
}

export const translation = defineKind({
  ...TRANSLATION,
  memberFormat: '<Language>',
  dependsOn: [
    'CustomObject',
    'CustomField',
    'ValueSet',
    'RecordType',
    'StateModel',
    'CustomAction',
    'Layout',
    'ListView',
  ],
  reversible: true,
  naming: { is: isLocale, form: 'a BCP 47 language tag in its usual spelling, such as de or pt-BR' },

  /** The name of a key is that of components of several types; the check knows which of them are there. */
  references({ labels }) {
    const named = new Map<string, Reference>();
    for (const text of Object.keys(labels)) {
      const key = keyOf(text);
      const pointer = `/labels/${pointerPart(text)}`;
      const add = (type: string, fullName: string): void => {
        const name = `${type}:${fullName}`;
        if (!named.has(name)) named.set(name, { type, fullName, pointer, ownCheck: true });
      };
      const dot = key.fullName.indexOf('.');
      for (const { type } of meant(key)) add(type.type, key.fullName);
      if (dot >= 0) add('CustomObject', key.fullName.slice(0, dot));
    }
    return [...named.values()];
  },

  check(component, context) {
    checkKeys(component, context);
  },

  isAffected: (_component, changes) => TRANSLATED.some(({ type }) => changes.names(type).size > 0),

  checkAll(context) {
    const all = componentsOf(context.after, TRANSLATION);
    const last = all.at(-1);
    if (last && all.length > TRANSLATIONS_MAX)
      context.problem('LIMIT_EXCEEDED', last, '', `A tenant may have at most ${TRANSLATIONS_MAX} translations.`, {
        details: { max: TRANSLATIONS_MAX },
      });
  },

  compile({ body }, draft) {
    draft.translations[body.apiName] = body.labels;
  },
});

/** True when it may be in a file that could not be read. */
function isUnread(key: Key, { unread }: CheckContext): boolean {
  if (unread.size === 0) return false;
  const [object = ''] = key.fullName.split('.');
  return (
    unread.has(componentKey(CUSTOM_OBJECT.type, object)) ||
    meant(key).some(({ type }) => unread.has(componentKey(type.type, key.fullName)))
  );
}

function checkKeys(component: TranslationComponent, context: CheckContext): void {
  for (const text of Object.keys(component.body.labels))
    if (!isThere(keyOf(text), context.after) && !isUnread(keyOf(text), context))
      context.problem(
        'REFERENCE_INVALID',
        component,
        `/labels/${pointerPart(text)}`,
        `There is nothing with a label that ${text} names.`,
        { remedy: 'Take the key out, or add what it names.' },
      );
}
