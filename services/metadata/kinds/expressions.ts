/** Expressions in the files of components: what they are checked against, and where their mistakes are. */
import { ExpressionError, type Schema } from '../../../lib/expression/types.ts';
import { fieldType, valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { memoizeByName } from '../../../lib/values/memoize.ts';
import { CUSTOM_OBJECT } from './bodies/custom-object.ts';
import { compileField } from './compile-field.ts';
import { type Component, componentKey, findComponent } from './component.ts';
import type { CheckContext } from './kind.ts';
import { systemFields } from './system-fields.ts';

/** The fields of an object in the configuration to be, as expressions see them. */
export const schemaOf = (object: string, context: CheckContext): Schema => schemas(context, object);

const schemas = memoizeByName((context: CheckContext, object): Schema => {
  const builtIn = systemFields();
  const custom = context.fieldsOf(object);
  const known = new Map<string, FieldMeta | undefined>();
  const customField = (name: string): FieldMeta | undefined => {
    if (!known.has(name)) {
      const field = custom.get(name);
      known.set(name, field && compileField(field, context.after));
    }
    return known.get(name);
  };
  const nameField = findComponent(context.after, CUSTOM_OBJECT, object)?.body.nameField;
  return {
    object,
    hasGroup: (name) => context.after.has(componentKey('Group', name)),
    fieldType: (name) => {
      if (name === 'name') return nameField?.fieldType;
      if (Object.hasOwn(builtIn, name)) return builtIn[name]?.fieldType;
      const field = customField(name);
      return field && valueTypeName(field);
    },
    length: (name) => {
      if (name === 'name') return (nameField && fieldType(nameField.fieldType).chars?.default) ?? null;
      return (Object.hasOwn(builtIn, name) ? builtIn[name] : customField(name))?.length ?? null;
    },
  };
});

/** The result of `check`; null when the expression at `pointer` has mistakes, which are reported at their places. */
export function checked<T>(component: Component, context: CheckContext, pointer: string, check: () => T): T | null {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    for (const { start, message, remedy } of error.mistakes)
      context.problem('EXPRESSION_INVALID', component, pointer, message, {
        ...(remedy === null ? {} : { remedy }),
        offset: start,
      });
    return null;
  }
}
