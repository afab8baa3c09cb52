/** Every kind of component, in the order in which they are applied and compiled. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { locate as locateType } from '../../../lib/metadata/paths.ts';
import { agentPolicy } from './agent-policy.ts';
import { customAction } from './custom-action.ts';
import { customField } from './custom-field.ts';
import { customObject } from './custom-object.ts';
import { dashboard } from './dashboard.ts';
import { duplicateRule } from './duplicate-rule.ts';
import { externalClient } from './external-client.ts';
import { group } from './group.ts';
import { identityProvider } from './identity-provider.ts';
import type { Kind } from './kind.ts';
import { layout } from './layout.ts';
import { listView } from './list-view.ts';
import { notificationTemplate } from './notification-template.ts';
import { permissionSet, profile } from './permissions.ts';
import { recordType } from './record-type.ts';
import { role } from './role.ts';
import { sharingRule } from './sharing-rule.ts';
import { stateModel } from './state-model.ts';
import { tenantSettings } from './tenant-settings.ts';
import { translation } from './translation.ts';
import { validationRule } from './validation-rule.ts';
import { valueSet } from './value-set.ts';

export const KINDS: readonly Kind[] = [
  tenantSettings,
  valueSet,
  customObject,
  customField,
  recordType,
  validationRule,
  duplicateRule,
  sharingRule,
  notificationTemplate,
  stateModel,
  customAction,
  role,
  group,
  profile,
  permissionSet,
  externalClient,
  identityProvider,
  dashboard,
  agentPolicy,
  layout,
  listView,
  translation,
];

const byType: ReadonlyMap<string, { readonly kind: Kind; readonly order: number }> = new Map(
  KINDS.map((kind, order) => [kind.type, { kind, order }]),
);

export const findKind = (type: string): Kind | undefined => byType.get(type)?.kind;
/** The object whose table a change of a component may change; null: none. */
export const tableOf = ({ type, fullName }: { readonly type: string; readonly fullName: string }): string | null =>
  findKind(type)?.inTable ? fullName.replace(/\..*/s, '') : null;
export const kindOrder = (type: string): number => byType.get(type)?.order ?? KINDS.length;

const ajv = new Ajv2020({ allErrors: true, strict: false, validateSchema: false });
const validators = new Map<string, ValidateFunction>();

/** Validator of a kind's files; compiled when first needed. */
export function validatorOf(kind: Kind): ValidateFunction {
  let validate = validators.get(kind.type);
  if (!validate) validators.set(kind.type, (validate = ajv.compile(kind.schema)));
  return validate;
}

export interface Location {
  readonly kind: Kind;
  readonly fullName: string;
  readonly object: string | null;
  readonly apiName: string;
}

/** The component of a path; null for a path of no kind. */
export function locate(path: string): Location | null {
  const found = locateType(path);
  const kind = found && findKind(found.type);
  return found && kind ? { kind, fullName: found.fullName, object: found.object, apiName: found.apiName } : null;
}
