/**
 * Consent texts of scopes: in plain words, by area, the far-reaching ones first. The public
 * descriptions of the API are written for developers.
 */
import { OPERATIONS } from '../../../contracts/operations.ts';
import { SCIM_ROUTES } from '../../../contracts/scim.ts';
import { type IdentityScope, type Scope, waysToScopes } from '../../../lib/operation.ts';
import { escapeHtml } from '../../../lib/values/html.ts';

const AREAS = {
  records: 'Records',
  dashboards: 'Dashboards',
  agents: 'Agents',
  configuration: 'Configuration',
  users: 'Users',
  audit: 'Audit trail',
  events: 'Events and files',
  calendar: 'Calendar and notifications',
  you: 'You',
  away: 'While you are away',
  other: 'Other',
} as const;

type Area = keyof typeof AREAS;

const TEXTS: Readonly<Record<Scope | IdentityScope, readonly [Area, string]>> = {
  'data:read': ['records', 'Read the records that you can see.'],
  'data:write': ['records', 'Create and change records.'],
  'data:delete': ['records', 'Delete records, and restore deleted ones.'],
  'actions:read': ['records', 'See which steps and actions records allow.'],
  'actions:execute': ['records', 'Take records to their next step, and run their actions.'],
  'bulk:run': ['records', 'Change many records at once.'],
  'analytics:read': ['dashboards', 'Read dashboards.'],
  'analytics:run': ['dashboards', 'Show figures, and create, change and delete dashboards.'],
  'agent:run': ['agents', 'Work as an agent, step by step and recorded.'],
  'agent:approve': ['agents', 'Approve what agents want to do, and undo what they did.'],
  'setup:read': ['configuration', 'Read the configuration of the company.'],
  'metadata:deploy': ['configuration', 'Change the configuration of the company.'],
  'users:manage': [
    'users',
    'Give people access: create, invite and change users and what they may do, make links that set their passwords, and share records and dashboards.',
  ],
  'audit:read': ['audit', 'Read who changed what, and when.'],
  'events:read': ['events', 'Read the event log.'],
  'events:manage': ['events', 'Have events sent to other systems.'],
  'files:read': ['events', 'Read files.'],
  'files:write': ['events', 'Upload, change and delete files.'],
  'notifications:read': ['calendar', 'Read notifications.'],
  'notifications:write': ['calendar', 'Change and send notifications.'],
  'calendar:read': ['calendar', 'Read calendars and events.'],
  'calendar:write': ['calendar', 'Change calendars and events.'],
  openid: ['you', 'Know who you are.'],
  profile: ['you', 'Know your name, username, language and time zone.'],
  email: ['you', 'Know your e-mail address.'],
  'me:read': ['you', 'See your profile, and which applications you have connected.'],
  'me:write': ['you', 'Change your preferences, and disconnect applications.'],
  offline_access: ['away', 'Stay connected while you are away, until you or an administrator end it.'],
};

/** Behind the endpoint for assistants scopes allow less than their texts say. */
const FOR_ASSISTANTS: Readonly<Record<string, string>> = {
  'metadata:deploy': 'Check changes of the configuration. It cannot deploy them.',
};

/** Scopes of operations that the catalogue calls high: what they do is hard to undo, or decides about others. */
const FAR_REACHING: ReadonlySet<string> = new Set(
  [...OPERATIONS, ...SCIM_ROUTES]
    .filter(({ risk }) => risk === 'high')
    .flatMap((operation) => waysToScopes(operation).flat()),
);

interface Told {
  scope: string;
  area: Area;
  text: string;
  farReaching: boolean;
}

interface ScopeList {
  /** Of all areas. */
  count: number;
  farReaching: number;
  html: string;
}

const isKnown = (scope: string): scope is keyof typeof TEXTS => Object.hasOwn(TEXTS, scope);

function told(scope: string, readsOnly: boolean): Told {
  const [area, text] = isKnown(scope) ? TEXTS[scope] : (['other', ''] as const);
  return {
    scope,
    area,
    text: (readsOnly && FOR_ASSISTANTS[scope]) || text,
    farReaching: !readsOnly && FAR_REACHING.has(scope),
  };
}

/** Far-reaching ones first, and else in the order of their areas. */
const byReach = (a: { farReaching: boolean }, b: { farReaching: boolean }): number =>
  Number(b.farReaching) - Number(a.farReaching);

/**
 * Scopes by area. `readsOnly`: where the tokens count, nothing is changed. `id` begins the ids of the headings, whose level
 * is `heading`.
 */
export function scopeList(
  scopes: readonly string[],
  { readsOnly, id, heading }: { readsOnly: boolean; id: string; heading: 'h2' | 'h4' },
): ScopeList {
  const all = scopes.map((scope) => told(scope, readsOnly)).sort(byReach);
  const areas = (Object.keys(AREAS) as Area[])
    .map((area) => ({ area, items: all.filter((one) => one.area === area) }))
    .filter(({ items }) => items.length > 0)
    .map((group) => ({ ...group, farReaching: group.items.some((item) => item.farReaching) }))
    .sort(byReach);
  const html = areas.map(({ area, items }) => {
    const label = `${id}-${area}`;
    return `<${heading} class="area" id="${label}">${AREAS[area]} <span class="count">${items.length}</span></${heading}>
<ul class="scopes" aria-labelledby="${label}">
${items.map(listed).join('\n')}
</ul>`;
  });
  return { count: all.length, farReaching: all.filter((one) => one.farReaching).length, html: html.join('\n') };
}

const listed = ({ scope, text, farReaching }: Told): string =>
  `<li${farReaching ? ' class="far"' : ''}>${escapeHtml(text)} <code>${escapeHtml(scope)}</code>${
    farReaching ? ' <span class="mark">Far-reaching</span>' : ''
  }</li>`;
