/** Role: the tree of who stands above whom. */
import { Type } from 'typebox';
import { type Component, componentKey, type Kind } from './kind.ts';
import { API_NAME, apiName, label, optional } from './schema.ts';

export const ROLES_MAX = 2_000;

export const role: Kind = {
  type: 'Role',
  memberFormat: '<Role>',
  pathPattern: 'roles/{apiName}.yaml',
  child: false,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('Role'),
      apiName: apiName('Stable name.'),
      label: label('As people read it.'),
      parent: optional(Type.String({ pattern: API_NAME, description: 'The role above it; none at the top.' })),
    },
    { additionalProperties: false },
  ),
  references: (body) =>
    body['parent'] ? [{ type: 'Role', fullName: String(body['parent']), pointer: '/parent' }] : [],
  checkAll(context) {
    const parent = (component: Component): Component | undefined =>
      context.after.get(componentKey('Role', String(component.body['parent'])));
    const roles = [...context.after.values()].filter((component) => component.type === 'Role');
    if (roles.length > ROLES_MAX) {
      context.problem('LIMIT_EXCEEDED', roles.at(-1)!, '', `A tenant has ${ROLES_MAX} roles at most.`, {
        details: { max: ROLES_MAX },
      });
      return;
    }
    for (const start of roles) {
      const seen = new Set<string>([start.fullName]);
      for (let at = parent(start); at; at = parent(at)) {
        if (at.fullName === start.fullName) {
          context.problem('REFERENCE_INVALID', start, '/parent', 'The role is above itself.');
          break;
        }
        if (seen.has(at.fullName)) break;
        seen.add(at.fullName);
      }
    }
  },
  compile(component, draft) {
    const { apiName: name, label: text, parent } = component.body as Record<string, string | undefined>;
    draft.roles[name!] = { apiName: name!, label: text!, parent: parent ?? null };
  },
};
