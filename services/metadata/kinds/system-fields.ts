/** The fields that the platform keeps for every record of every object, in the order in which they are answered. */
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { fieldMeta } from './field-meta.ts';

const system = (apiName: string, fieldType: FieldMeta['fieldType'], label: string, more: Partial<FieldMeta> = {}) =>
  fieldMeta({ apiName, fieldType, label, system: true, ...more });

const user = { referenceTo: ['User'] };

const FIELDS: Readonly<Record<string, FieldMeta>> = Object.freeze({
  id: system('id', 'id', 'ID', { unique: true }),
  ownerId: system('ownerId', 'reference', 'Owner', user),
  createdAt: system('createdAt', 'dateTime', 'Created at'),
  createdById: system('createdById', 'reference', 'Created by', user),
  updatedAt: system('updatedAt', 'dateTime', 'Updated at'),
  updatedById: system('updatedById', 'reference', 'Updated by', user),
  recordVersion: system('recordVersion', 'integer', 'Record version'),
  recordTypeApiName: system('recordTypeApiName', 'text', 'Record type', { length: 40 }),
});

export const systemFields = (): Record<string, FieldMeta> => ({ ...FIELDS });

export const SYSTEM_FIELD_NAMES: ReadonlySet<string> = new Set([...Object.keys(FIELDS), 'name']);
