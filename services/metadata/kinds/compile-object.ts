/** A CustomObject as the snapshot has it, before its fields and rules are added. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { NO_RULES } from '../../../lib/schema/snapshot.ts';
import type { ObjectComponent } from './bodies/custom-object.ts';
import { fieldMeta } from './field-meta.ts';
import type { ObjectDraft } from './kind.ts';
import { isCustom } from './names.ts';
import { systemFields } from './system-fields.ts';

export function compileObject({ body }: ObjectComponent): ObjectDraft {
  const { nameField } = body;
  const { numbered = false, chars } = fieldType(nameField.fieldType);
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
        length: chars?.default ?? null,
        required: !numbered,
        format: nameField.format ?? null,
      }),
    },
    childRelationships: [],
    ...structuredClone(NO_RULES),
  };
}
