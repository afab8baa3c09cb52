/**
 * Labels in the language of who asks. Translations name what they translate: the full name of a component, and after
 * `#` a part of it that has a label of its own. Source: docs/reference/screens.md#translations.
 */
import Negotiator from 'negotiator';
import { memoize } from '../values/memoize.ts';
import { ownEntry } from './lookup.ts';
import type { ComponentTypeName, FieldMeta, Snapshot } from './snapshot.ts';

/** Types of components that can be translated, themselves or parts of them. */
export type TranslatedType = Extract<
  ComponentTypeName,
  'CustomObject' | 'CustomField' | 'ValueSet' | 'RecordType' | 'StateModel' | 'CustomAction' | 'Layout' | 'ListView'
>;

/** The part of an object that its plural is. */
export const PLURAL = 'labelPlural';

/** Longer headers choose nothing: reading one takes time with every range in it. */
const HEADER_MAX_CHARS = 1_000;

export class Labels {
  /** Of the labels: a translation's language, or that of the tenant. */
  readonly language: string;
  readonly #translation: Readonly<Record<string, string>> | null;

  constructor(language: string, translation: Readonly<Record<string, string>> | null) {
    this.language = language;
    this.#translation = translation;
  }

  /** The label of a component or of a part of it; without a translation the one it has. */
  of(type: TranslatedType, fullName: string, label: string, part?: string): string {
    return this.#find(type, fullName, part) ?? label;
  }

  /** Fields that every object has are translated for all objects at once or for one. */
  ofField(object: string, { apiName, label, system }: FieldMeta): string {
    const found = this.#find('CustomField', `${object}.${apiName}`);
    return found ?? (system ? this.#find('CustomField', apiName) : undefined) ?? label;
  }

  /** Values are translated with their field, or with the set that they come from. */
  ofValue(object: string, { apiName, valueSet }: FieldMeta, value: string, label: string): string {
    const found = this.#find('CustomField', `${object}.${apiName}`, value);
    return found ?? (valueSet === undefined ? undefined : this.#find('ValueSet', valueSet, value)) ?? label;
  }

  #find(type: TranslatedType, fullName: string, part?: string): string | undefined {
    if (this.#translation === null) return undefined;
    const name = part === undefined ? fullName : `${fullName}#${part}`;
    return ownEntry(this.#translation, `${type}:${name}`) ?? ownEntry(this.#translation, name);
  }
}

/** The labels that an `Accept-Language` header asks for. */
export function labelsFor(snapshot: Snapshot, acceptLanguage: string | undefined): Labels {
  const { own, byTag } = languagesOf(snapshot);
  if (byTag.size === 0 || acceptLanguage === undefined || acceptLanguage.length > HEADER_MAX_CHARS) return own;
  for (const range of new Negotiator({ headers: { 'accept-language': acceptLanguage } }).languages())
    for (const tag of tagsFor(range.toLowerCase())) {
      const found = byTag.get(tag);
      if (found) return found;
    }
  return own;
}

const languagesOf = memoize(({ tenant, translations }: Snapshot) => {
  const own = new Labels(tenant.locale, null);
  const byTag = new Map(
    Object.entries(translations).map(([language, labels]) => [language.toLowerCase(), new Labels(language, labels)]),
  );
  // A request for English must not get German because the tenant's own labels are British.
  if (byTag.size > 0) for (const tag of tagsFor(tenant.locale.toLowerCase())) if (!byTag.has(tag)) byTag.set(tag, own);
  return { own, byTag };
});

/** A range, and what it falls back to (RFC 4647, 3.4): `zh-hant-cn`, `zh-hant`, `zh`. */
export function tagsFor(range: string): string[] {
  const subtags = range.split('-');
  return subtags
    .map((_, at) => subtags.slice(0, subtags.length - at))
    .filter((tag, at) => at === 0 || (tag.at(-1) ?? '').length > 1)
    .map((tag) => tag.join('-'));
}
