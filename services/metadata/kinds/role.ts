/** Role: the tree of who stands above whom. */
import { Type } from 'typebox';
import { type ComponentOf, componentsOf, componentType, findComponent } from './component.ts';
import { defineKind } from './kind.ts';
import { API_NAME, apiName, label, optional } from './schema.ts';

export const ROLES_MAX = 2_000;

export const ROLE = componentType('Role', {
  apiName: apiName('Stable name.'),
  label: label('As people read it.'),
  parent: optional(Type.String({ pattern: API_NAME, description: 'The role above it; none at the top.' })),
});

export const role = defineKind({
  ...ROLE,
  memberFormat: '<Role>',
  reversible: true,
  dependsOn: ['Role'],
  references: ({ parent }) => (parent ? [{ type: 'Role', fullName: parent, pointer: '/parent' }] : []),
  checkAll(context) {
    const parent = ({ body }: ComponentOf<typeof ROLE>) =>
      body.parent === undefined ? undefined : findComponent(context.after, ROLE, body.parent);
    const roles = componentsOf(context.after, ROLE);
    const last = roles.at(-1);
    if (last && roles.length > ROLES_MAX) {
      context.problem('LIMIT_EXCEEDED', last, '', `A tenant may have at most ${ROLES_MAX} roles.`, {
        details: { max: ROLES_MAX },
      });
      return;
    }
    for (const start of roles) {
      const seen = new Set<string>([start.fullName]);
      for (let at = parent(start); at; at = parent(at)) {
        if (at.fullName === start.fullName) {
          context.problem('REFERENCE_INVALID', start, '/parent', 'The role hierarchy contains a cycle.');
          break;
        }
        if (seen.has(at.fullName)) break;
        seen.add(at.fullName);
      }
    }
  },
  compile(component, draft) {
    const { apiName: name, label: text, parent = null } = component.body;
    draft.roles[name] = { apiName: name, label: text, parent };
  },
});
