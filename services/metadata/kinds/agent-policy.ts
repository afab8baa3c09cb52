/** AgentPolicy: what agents may do by themselves, and what waits for a person. */
import { type Static, Type } from 'typebox';
import { CLI_CLIENT_ID } from '../../../contracts/auth.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { ApproverMeta } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { type ComponentOf, componentsOf, componentType } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { API_NAME, apiName, flag, group, listOf, optional, setOf, shownFlag } from './schema.ts';

const AGENT_POLICIES_MAX = 100;
const AGENT_RULES_MAX = 200;
const APPROVERS_MAX = 50;
/** An operation, or all whose ids begin like this. */
const OPERATION_ID = '^[a-z][A-Za-z]*(\\.[a-z][A-Za-z]*)*(\\.\\*)?$';

const approver = group(
  {
    role: optional(Type.String({ pattern: API_NAME, description: 'The users of this role and of those above it.' })),
    group: optional(Type.String({ pattern: API_NAME, description: 'The members of this group.' })),
    user: optional(Type.String({ minLength: 1, maxLength: 255, description: 'The user with this id.' })),
    manager: optional(flag(false, 'The manager of the user in whose name the agent acts.')),
  },
  'One of them.',
);

const approvers = (description: string) => optional(listOf(approver, description, APPROVERS_MAX));
const seconds = (minimum: number, description: string) =>
  optional(Type.Integer({ minimum, maximum: 604_800, description }));

const RULE = group(
  {
    operationIds: optional(
      setOf(
        Type.String({ maxLength: 100, pattern: OPERATION_ID }),
        'Operations; `data.*` stands for all of data.',
        200,
      ),
    ),
    risk: optional(Type.Enum(['low', 'medium', 'high'], { description: 'Operations of this risk.' })),
    objects: optional(setOf(Type.String({ pattern: API_NAME }), 'Operations on these objects.', 500)),
    decision: Type.Enum(['allow', 'approve', 'deny'], { description: 'Decision about matching calls.' }),
    approvers: approvers('approve: the approvers; every user who may approve actions of agents when there are none.'),
    requiredApprovals: optional(
      Type.Integer({ minimum: 1, maximum: 10, description: 'approve: how many people; default 1.' }),
    ),
    expiresInSeconds: seconds(300, 'approve: how long a decision is waited for; default 24 hours.'),
    escalateAfterSeconds: seconds(
      60,
      'approve: after this without a decision, the people of escalateTo decide as well.',
    ),
    escalateTo: approvers('approve: who else decides after escalateAfterSeconds.'),
  },
  'A rule; all that it names must fit.',
);

const CLIENT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;

type Rule = Static<typeof RULE>;

const limit = (maximum: number, description: string) => optional(Type.Integer({ minimum: 0, maximum, description }));

export const AGENT_POLICY = componentType('AgentPolicy', {
  apiName: apiName('Stable name; approvals name it.'),
  appliesTo: group(
    {
      clients: setOf(
        Type.String({ minLength: 1, maxLength: 80 }),
        `apiNames of external clients, or ${CLI_CLIENT_ID}; \`*\` stands for all.`,
      ),
    },
    'For the runs of which clients. Policies that name a client come before those for all.',
    { 'x-erp-always': true },
  ),
  rules: optional(listOf(RULE, 'The first rule that fits decides.', AGENT_RULES_MAX)),
  budgets: optional(
    group(
      {
        maxCost: limit(10_000, 'Cost units.'),
        maxMutations: limit(1_000, 'Calls that change something.'),
        maxRecords: limit(10_000, 'Records that calls change.'),
        maxCostPerDay: limit(LIMITS.agent_cost_of_day_max, 'Cost units in 24 hours.'),
        maxMutationsPerDay: limit(LIMITS.agent_mutations_of_day_max, 'Calls that change something, in 24 hours.'),
        maxRecordsPerDay: limit(LIMITS.agent_records_of_day_max, 'Records that calls change, in 24 hours.'),
      },
      'The most that a run can ask for, and that all runs of a client in the name of a user may take in 24 hours.',
    ),
  ),
  allowSelfApproval: shownFlag(false, 'The user in whose name the agent acts may decide.'),
});

type PolicyComponent = ComponentOf<typeof AGENT_POLICY>;

export const agentPolicy = defineKind({
  ...AGENT_POLICY,
  memberFormat: '<AgentPolicy>',
  reversible: true,
  dependsOn: ['ExternalClient', 'CustomObject', 'Role', 'Group'],

  references({ appliesTo, rules = [] }) {
    const found: Reference[] = [];
    for (const [i, name] of appliesTo.clients.entries())
      if (CLIENT_NAME.test(name))
        found.push({ type: 'ExternalClient', fullName: name, pointer: `/appliesTo/clients/${i}` });
    for (const [i, rule] of rules.entries()) {
      for (const [n, name] of (rule.objects ?? []).entries())
        found.push({ type: 'CustomObject', fullName: name, pointer: `/rules/${i}/objects/${n}` });
      for (const key of ['approvers', 'escalateTo'] as const)
        for (const [n, { role, group: members }] of (rule[key] ?? []).entries()) {
          const pointer = `/rules/${i}/${key}/${n}`;
          if (role !== undefined) found.push({ type: 'Role', fullName: role, pointer: `${pointer}/role` });
          if (members !== undefined) found.push({ type: 'Group', fullName: members, pointer: `${pointer}/group` });
        }
    }
    return found;
  },

  check(component, context) {
    for (const [i, name] of component.body.appliesTo.clients.entries())
      if (name !== '*' && name !== CLI_CLIENT_ID && !CLIENT_NAME.test(name))
        context.problem(
          'YAML_SCHEMA_INVALID',
          component,
          `/appliesTo/clients/${i}`,
          `A client is named by the apiName of its ExternalClient, such as DunningAgent, not by its client_id; ` +
            `${CLI_CLIENT_ID} and * stand for themselves.`,
        );
    for (const [i, rule] of (component.body.rules ?? []).entries()) {
      checkOperations(component, rule, `/rules/${i}`, context);
      checkApprovers(component, rule, `/rules/${i}`, context);
    }
  },

  checkAll(context) {
    const policies = componentsOf(context.after, AGENT_POLICY);
    const last = policies.at(-1);
    if (last && policies.length > AGENT_POLICIES_MAX)
      context.problem('LIMIT_EXCEEDED', last, '', `A tenant may have at most ${AGENT_POLICIES_MAX} agent policies.`, {
        details: { max: AGENT_POLICIES_MAX },
      });
  },

  compile(component, draft) {
    const { apiName: name, appliesTo, rules = [], budgets = {}, allowSelfApproval } = component.body;
    draft.agentPolicies[name] = {
      apiName: name,
      clients: appliesTo.clients,
      rules: rules.map((rule) => ({
        operationIds: rule.operationIds ?? [],
        risk: rule.risk ?? null,
        objects: rule.objects ?? [],
        decision: rule.decision,
        approvers: (rule.approvers ?? []).map(approverMeta),
        requiredApprovals: rule.requiredApprovals ?? 1,
        expiresInSeconds: rule.expiresInSeconds ?? null,
        escalateAfterSeconds: rule.escalateAfterSeconds ?? null,
        escalateTo: (rule.escalateTo ?? []).map(approverMeta),
      })),
      budgets: {
        maxCost: budgets.maxCost ?? null,
        maxMutations: budgets.maxMutations ?? null,
        maxRecords: budgets.maxRecords ?? null,
        maxCostPerDay: budgets.maxCostPerDay ?? null,
        maxMutationsPerDay: budgets.maxMutationsPerDay ?? null,
        maxRecordsPerDay: budgets.maxRecordsPerDay ?? null,
      },
      allowSelfApproval,
    };
  },
});

function approverMeta({ role, group: members, user }: Static<typeof approver>): ApproverMeta {
  if (role !== undefined) return { role };
  if (members !== undefined) return { group: members };
  return user === undefined ? { manager: true } : { user: user.toLowerCase() };
}

function checkOperations(component: PolicyComponent, rule: Rule, pointer: string, context: CheckContext): void {
  for (const [i, id] of (rule.operationIds ?? []).entries()) {
    const known = id.endsWith('.*')
      ? OPERATIONS.some(({ operationId }) => operationId.startsWith(id.slice(0, -1)))
      : OPERATIONS.some(({ operationId }) => operationId === id);
    if (known) continue;
    context.problem('REFERENCE_INVALID', component, `${pointer}/operationIds/${i}`, `There is no operation ${id}.`, {
      remedy: 'GET /capabilities lists all operations.',
    });
  }
}

/** Each approver is one, and only what needs people names them. */
function checkApprovers(component: PolicyComponent, rule: Rule, pointer: string, context: CheckContext): void {
  const invalid = (at: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}${at}`, message);
  const forPeople = [
    'approvers',
    'requiredApprovals',
    'expiresInSeconds',
    'escalateAfterSeconds',
    'escalateTo',
  ] as const;
  if (rule.decision !== 'approve')
    for (const key of forPeople) if (rule[key] !== undefined) invalid(`/${key}`, `${key} is for decision approve.`);
  for (const key of ['approvers', 'escalateTo'] as const)
    for (const [i, { role, group: members, user, manager }] of (rule[key] ?? []).entries())
      if ([role, members, user, manager || undefined].filter((named) => named !== undefined).length !== 1)
        invalid(`/${key}/${i}`, 'Name one of role, group, user or manager: true.');
      else if (user !== undefined && !isUuid(user.toLowerCase())) invalid(`/${key}/${i}/user`, notAnId(user));
  if ((rule.escalateAfterSeconds === undefined) !== (rule.escalateTo === undefined))
    invalid('', 'escalateAfterSeconds and escalateTo belong together.');
  const people = peopleNamed(rule);
  const { requiredApprovals: required = 1 } = rule;
  if (people !== null && people < required)
    invalid(
      '/requiredApprovals',
      `The rule names ${people} ${people === 1 ? 'person' : 'people'} to decide, so nothing is ever approved ${required} times.`,
    );
  const expires = rule.expiresInSeconds ?? LIMITS.agent_approval_seconds;
  if ((rule.escalateAfterSeconds ?? 0) >= expires)
    invalid('/escalateAfterSeconds', `The approval expires before that, after ${expires} s.`);
}

/** Usernames change hands, ids do not. */
const notAnId = (user: string): string =>
  `user takes the id of a user, not the username ${user}: POST /data/User/query with a condition on username answers it.`;

/** How many people can decide, with those of an escalation; null: that depends on the users of the tenant. */
function peopleNamed({ approvers: deciders = [], escalateTo = [] }: Rule): number | null {
  const all = [...deciders, ...escalateTo];
  if (deciders.length === 0 || all.some(({ user, manager }) => user === undefined && manager !== true)) return null;
  return new Set(all.map(({ user }) => (user === undefined ? null : user.toLowerCase()))).size;
}
