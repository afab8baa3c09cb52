/** A CustomObject as the snapshot has it. */
import type { ObjectMeta, SharingDefault } from '../../../lib/schema/snapshot.ts';
import { fieldMeta } from './field-meta.ts';
import type { Body, Component } from './kind.ts';
import { isCustom } from './names.ts';
import { systemFields } from './system-fields.ts';

export interface ObjectBody extends Body {
  readonly type: string;
  readonly apiName: string;
  readonly label: string;
  readonly labelPlural: string;
  readonly description?: string;
  readonly nameField: { label: string; fieldType: 'text' | 'autoNumber'; format?: string };
  readonly sharingDefault: SharingDefault;
  readonly api: { published: boolean };
  readonly features: { history: boolean; search: boolean; duplicates?: boolean; events: boolean };
  readonly defaultSearchFields?: string[];
}

/** The object with its name and system fields; the other kinds add what belongs to it. */
export function compileObject(component: Component): ObjectMeta {
  const body = component.body as ObjectBody;
  const { nameField } = body;
  return {
    apiName: body.apiName,
    label: body.label,
    labelPlural: body.labelPlural,
    description: body.description ?? null,
    custom: isCustom(body.apiName),
    published: body.api.published,
    sharingDefault: body.sharingDefault,
    features: { ...body.features, duplicates: body.features.duplicates ?? false },
    nameField: 'name',
    defaultSearchFields: body.defaultSearchFields?.length ? body.defaultSearchFields : ['name'],
    fields: {
      ...systemFields(),
      name: fieldMeta({
        apiName: 'name',
        fieldType: nameField.fieldType,
        label: nameField.label,
        length: nameField.fieldType === 'text' ? 255 : null,
        required: nameField.fieldType === 'text',
        format: nameField.format ?? null,
      }),
    },
    childRelationships: [],
    validationRules: [],
    duplicateRules: [],
    sharingRules: [],
    stateModel: null,
    recordTypes: [],
    actions: [],
  };
}
