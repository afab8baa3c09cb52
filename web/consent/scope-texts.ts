/**
 * Consent texts of scopes, as the services declare them: in plain words, by area, the far-reaching ones first. The public
 * descriptions of the API are written for developers.
 */
import { SERVICES } from '../../config/services.ts';
import type { ConsentArea, ConsentText } from '../../contracts/declaration.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { SCIM_ROUTES } from '../../contracts/scim.ts';
import { waysToScopes } from '../../lib/operation.ts';
import { escapeHtml } from '../../lib/values/html.ts';

const AREAS: Readonly<Record<ConsentArea, string>> = {
  records: 'Records',
  dashboards: 'Dashboards',
  agents: 'Agents',
  configuration: 'Configuration',
  users: 'Users',
  audit: 'Audit trail',
  events: 'Events',
  calendar: 'Calendar and notifications',
  you: 'You',
  away: 'While you are away',
  other: 'Other',
};

const UNKNOWN: ConsentText = { area: 'other', text: '' };

const TEXTS: ReadonlyMap<string, ConsentText> = new Map(
  Object.values(SERVICES).flatMap(({ consent = {} }) => Object.entries(consent)),
);

/** Scopes of operations that the catalogue calls high: what they do is hard to undo, or decides about others. */
const FAR_REACHING: ReadonlySet<string> = new Set(
  [...OPERATIONS, ...SCIM_ROUTES]
    .filter(({ risk }) => risk === 'high')
    .flatMap((operation) => waysToScopes(operation).flat()),
);

interface Told {
  scope: string;
  area: ConsentArea;
  text: string;
  farReaching: boolean;
}

interface ScopeList {
  /** Of all areas. */
  count: number;
  farReaching: number;
  html: string;
}

function told(scope: string, readsOnly: boolean): Told {
  const { area, text, forAssistants } = TEXTS.get(scope) ?? UNKNOWN;
  return {
    scope,
    area,
    text: (readsOnly && forAssistants) || text,
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
  const areas = Object.entries(AREAS)
    .map(([area, title]) => ({ area, title, items: all.filter((one) => one.area === area) }))
    .filter(({ items }) => items.length > 0)
    .map((group) => ({ ...group, farReaching: group.items.some((item) => item.farReaching) }))
    .sort(byReach);
  const html = areas.map(({ area, title, items }) => {
    const label = `${id}-${area}`;
    return `<${heading} class="area" id="${label}">${title} <span class="count">${items.length}</span></${heading}>
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
