/** Group: users named one by one, by their roles, or as the members of other groups. */
import { Type } from 'typebox';
import { circlesOf } from './circles.ts';
import { type Body, type CheckContext, type Component, componentKey, type Kind, type Reference } from './kind.ts';
import { API_NAME, apiName, group as keys, label, optional, setOf } from './schema.ts';

interface GroupBody extends Body {
  readonly apiName: string;
  readonly label: string;
  readonly members?: { roles?: string[]; groups?: string[]; users?: string[] };
}

export const GROUPS_MAX = 1_000;

export const group: Kind = {
  type: 'Group',
  memberFormat: '<Group>',
  pathPattern: 'groups/{apiName}.yaml',
  child: false,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('Group'),
      apiName: apiName('Stable name.'),
      label: label('As people read it.'),
      members: optional(
        keys(
          {
            roles: optional(
              setOf(Type.String({ pattern: API_NAME }), 'Roles: their users, and those of the roles above them.'),
            ),
            groups: optional(setOf(Type.String({ pattern: API_NAME }), 'Groups whose members are members here, too.')),
            users: optional(
              setOf(Type.String({ minLength: 1, maxLength: 255 }), 'Usernames; one that nobody has is nobody.'),
            ),
          },
          'Who belongs to it.',
        ),
      ),
    },
    { additionalProperties: false },
  ),

  references(body) {
    const { roles = [], groups = [] } = (body as GroupBody).members ?? {};
    const named = (type: string, names: readonly string[], key: string): Reference[] =>
      names.map((fullName, i) => ({ type, fullName, pointer: `/members/${key}/${i}` }));
    return [...named('Role', roles, 'roles'), ...named('Group', groups, 'groups')];
  },

  checkAll(context) {
    const groups = [...context.after.values()].filter((component) => component.type === 'Group');
    checkCircles(groups, context);
    if (groups.length > GROUPS_MAX)
      context.problem('LIMIT_EXCEEDED', groups.at(-1)!, '', `A tenant has ${GROUPS_MAX} groups at most.`, {
        details: { max: GROUPS_MAX },
      });
  },

  compile(component, draft) {
    const { apiName: name, label: text, members = {} } = component.body as GroupBody;
    draft.groups[name] = {
      apiName: name,
      label: text,
      members: { roles: members.roles ?? [], groups: members.groups ?? [], users: members.users ?? [] },
    };
  },
};

/** Every group that is a member of itself says so. */
function checkCircles(groups: readonly Component[], context: CheckContext): void {
  const inside = (name: string): readonly string[] =>
    (context.after.get(componentKey('Group', name))?.body as GroupBody | undefined)?.members?.groups ?? [];
  const names = groups.map((component) => component.fullName);
  const circles = circlesOf(names, inside);
  for (const component of groups) {
    const circle = circles.get(component.fullName);
    if (circle === undefined) continue;
    const first = inside(component.fullName).find((name) => circles.get(name) === circle)!;
    const way = first === component.fullName ? '' : `, by way of ${first}`;
    const at = `/members/groups/${inside(component.fullName).indexOf(first)}`;
    context.problem('REFERENCE_INVALID', component, at, `The group is a member of itself${way}.`);
  }
}
