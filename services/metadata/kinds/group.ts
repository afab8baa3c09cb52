/** Group: users named one by one, by their roles, or as the members of other groups. */
import { Type } from 'typebox';
import { type ComponentOf, componentsOf, componentType, findComponent } from './component.ts';
import { cyclesOf } from './cycles.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { API_NAME, apiName, group as keys, label, optional, setOf } from './schema.ts';

export const GROUPS_MAX = 1_000;

export const GROUP = componentType('Group', {
  apiName: apiName('Stable name.'),
  label: label('As people read it.'),
  members: optional(
    keys(
      {
        roles: optional(setOf(Type.String({ pattern: API_NAME }), 'Roles: their users and the users of roles above.')),
        groups: optional(setOf(Type.String({ pattern: API_NAME }), 'Groups whose members belong to this one.')),
        users: optional(setOf(Type.String({ minLength: 1, maxLength: 255 }), 'Usernames; unknown ones are ignored.')),
      },
      'Members, by role, group or username.',
    ),
  ),
});

type GroupComponent = ComponentOf<typeof GROUP>;

export const group = defineKind({
  ...GROUP,
  memberFormat: '<Group>',
  reversible: true,
  dependsOn: ['Role', 'Group'],

  references(body) {
    const { roles = [], groups = [] } = body.members ?? {};
    const named = (type: string, names: readonly string[], key: string): Reference[] =>
      names.map((fullName, i) => ({ type, fullName, pointer: `/members/${key}/${i}` }));
    return [...named('Role', roles, 'roles'), ...named('Group', groups, 'groups')];
  },

  checkAll(context) {
    const groups = componentsOf(context.after, GROUP);
    checkCircles(groups, context);
    const last = groups.at(-1);
    if (last && groups.length > GROUPS_MAX)
      context.problem('LIMIT_EXCEEDED', last, '', `A tenant may have at most ${GROUPS_MAX} groups.`, {
        details: { max: GROUPS_MAX },
      });
  },

  compile(component, draft) {
    const { apiName: name, label: text, members = {} } = component.body;
    draft.groups[name] = {
      apiName: name,
      label: text,
      members: { roles: members.roles ?? [], groups: members.groups ?? [], users: members.users ?? [] },
    };
  },
});

/** Every group that is a member of itself says so. */
function checkCircles(groups: readonly GroupComponent[], context: CheckContext): void {
  const inside = (name: string): readonly string[] =>
    findComponent(context.after, GROUP, name)?.body.members?.groups ?? [];
  const names = groups.map((component) => component.fullName);
  const cycles = cyclesOf(names, inside);
  for (const component of groups) {
    const cycle = cycles.get(component.fullName);
    if (cycle === undefined) continue;
    const first = inside(component.fullName).find((name) => cycles.get(name) === cycle) ?? component.fullName;
    const way = first === component.fullName ? '' : `, by way of ${first}`;
    const at = `/members/groups/${inside(component.fullName).indexOf(first)}`;
    context.problem('REFERENCE_INVALID', component, at, `The group is a member of itself${way}.`);
  }
}
