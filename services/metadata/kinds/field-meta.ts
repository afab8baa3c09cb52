import type { FieldMeta } from '../../../lib/schema/snapshot.ts';

type Given = Pick<FieldMeta, 'apiName' | 'fieldType' | 'label'> & Partial<FieldMeta>;

const UNSET: FieldMeta = {
  apiName: '',
  fieldType: 'text',
  label: '',
  description: null,
  helpText: null,
  custom: false,
  system: false,
  required: false,
  unique: false,
  externalId: false,
  caseSensitive: false,
  length: null,
  precision: null,
  scale: null,
  minimum: null,
  maximum: null,
  pattern: null,
  defaultValue: null,
  format: null,
  picklistValues: null,
  restrictedPicklist: false,
  controllingField: null,
  referenceTo: [],
  relationshipName: null,
  onDelete: null,
  currencyField: null,
  formula: null,
  rollup: null,
  stateField: false,
  dataClassification: null,
  semantics: null,
  deprecated: false,
  example: null,
};

/** A field of the snapshot; what is not given is absent or off. */
export const fieldMeta = (given: Given): FieldMeta => ({ ...UNSET, ...given });
