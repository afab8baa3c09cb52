/** The proposal of an agent: what would change, field by field, as the platform's dry run has found it. */
import { CallFailed, call } from '../../shared/api.js';
import { element, foreign } from '../../shared/elements.js';
import { moment, text } from '../../shared/format.js';

/** @import { Approval, ApprovalSummary, Description, DescribedField, Deployment, PlanChange, PlanProblem, Preview, Change } from './api-types.d.ts' */
/** @import { Place } from '../../shared/types.d.ts' */

/** Absent or hidden parts are left out of the view. */
const orNothing = (/** @type {Promise<any>} */ asked) =>
  asked.catch((error) => {
    if (error instanceof CallFailed) return null;
    throw error;
  });

/**
 * Name of a record; its id where the person does not see it.
 * @param {string} object
 * @param {string} id
 * @returns {Promise<string>}
 */
export async function nameOf(object, id) {
  const found = await orNothing(call(`/data/${encodeURIComponent(object)}/${encodeURIComponent(id)}?fields=id,name`));
  return found?.name ? String(found.name) : id;
}

/** For people; other operations have the summary of the API. */
const DEEDS = new Map([
  ['data.records.create', 'Create'],
  ['data.records.update', 'Change'],
  ['data.records.upsert', 'Create or change'],
  ['data.records.delete', 'Delete'],
  ['data.records.restore', 'Restore'],
  ['data.shares.create', 'Share'],
  ['data.shares.delete', 'End a share of'],
  ['metadata.deployments.create', 'Deploy configuration'],
  ['metadata.deployments.cancel', 'Cancel a deployment'],
]);

/** Object and id in the path of a request on a record. */
const targetOf = (/** @type {string} */ path) =>
  /\/data\/([A-Za-z]\w*)(?:\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))?/.exec(path)?.slice(1) ?? [];

/**
 * `Delete Account: Nordwind`.
 * @param {ApprovalSummary & { preview?: Preview | null }} approval the preview has the name of what is deleted by now
 */
export async function titleOf({ operationId, path, summary, preview }) {
  const [object, id] = targetOf(path);
  const deed = DEEDS.get(operationId);
  const title = deed ? [deed, ...(object ? [object] : [])].join(' ') : summary;
  if (!object || !id) return title;
  return `${title}: ${recordOf(preview?.before)?.['name'] ?? (await nameOf(object, id))}`;
}

/**
 * @param {Approval} approval
 * @param {Place} place
 * @returns {Promise<{ parts: Node[], whole: boolean }>} whole: the person was shown everything
 */
export async function showProposal(approval, place) {
  const { preview, request } = approval;
  const changes = changesOf(approval);
  const shown = [request.body, ...changes.flatMap(({ record, before }) => [record, before])];
  const hidden = preview?.hidden || shown.includes(HIDDEN);
  const whole = !request.bodyOmitted && !preview?.omitted && !hidden;
  const [named, parts] = await Promise.all([
    deploymentPart(approval, place),
    isPlan(preview) ? planParts(preview) : changesParts(changes, place),
  ]);
  return { parts: [...named, ...parts, ...verdict(preview), requestPart(approval)], whole };
}

/**
 * The deployment that a request names: one to take back or to cancel, or a validation whose files it deploys.
 * @param {Approval} approval
 * @param {Place} place
 */
async function deploymentPart({ operationId, path, preview }, place) {
  const { revertsDeploymentId, validationId } = preview ?? {};
  const canceled = operationId === 'metadata.deployments.cancel' && /\/deployments\/([^/]+)/.exec(path)?.[1];
  const [words, id] = revertsDeploymentId
    ? ['Takes back the deployment', revertsDeploymentId]
    : validationId
      ? ['Deploys the files of the validation', validationId]
      : ['Cancels the deployment', canceled];
  if (!id) return [];
  /** @type {Deployment | null} */
  const found = await orNothing(call(`/metadata/deployments/${encodeURIComponent(id)}`));
  const origin = found
    ? [` of ${moment(found.createdAt, place)} by `, foreign(found.createdBy.displayName), ` (${found.deploymentId})`]
    : [` ${id}`];
  return [element('p', { class: 'deployment' }, words, ...origin, '.')];
}

/** In place of what sharing does not show to this person. */
const HIDDEN = '[hidden]';

const CHANGES = /** @type {const} */ (['creates', 'updates', 'deletes']);
const PROBLEMS = /** @type {const} */ (['blocked', 'warnings']);

const isPlan = (/** @type {Preview | null} */ preview) => preview !== null && CHANGES.some((list) => list in preview);

/** @param {unknown} value */
const recordOf = (value) =>
  typeof value === 'object' && value !== null ? /** @type {Record<string, unknown>} */ (value) : null;

/**
 * What the request changes: one record, or those of the parts of a composite request. A part that reads changes nothing.
 * @param {Approval} approval
 * @returns {Change[]}
 */
function changesOf({ path, request, preview }) {
  if (!preview?.parts) return [{ title: null, path, before: preview?.before, record: preview?.record }];
  const { requests = [], records = [], objectApiName } = recordOf(request.body) ?? {};
  const rows = Array.isArray(records) ? records : [];
  const sent = Array.isArray(requests) ? requests : [];
  return preview.parts.flatMap(({ before, record }, at) => {
    const { method, path: partPath } = sent[at] ?? {};
    if (record === undefined) return [];
    const rowPath = `/data/${objectApiName}/${rows[at]?.id ?? ''}`;
    const deed = method ? `${VERBS.get(method) ?? method} ${targetOf(partPath)[0] ?? partPath}` : `Row ${at + 1}`;
    const name = recordOf(before)?.['name'] ?? recordOf(record)?.['name'];
    return [{ title: name ? `${deed}: ${name}` : deed, path: partPath ?? rowPath, before, record }];
  });
}

/** Of parts of a composite request. */
const VERBS = new Map([
  ['POST', 'Create'],
  ['PATCH', 'Change'],
  ['PUT', 'Create or change'],
  ['DELETE', 'Delete'],
]);

/**
 * @param {Change[]} changes
 * @param {Place} place
 */
async function changesParts(changes, place) {
  const parts = await Promise.all(
    changes.map(async (change) => {
      const shown = await recordParts(change, place);
      return change.title === null ? shown : [element('h3', {}, foreign(change.title)), ...shown];
    }),
  );
  return parts.flat();
}

/**
 * @param {Change} change
 * @param {Place} place
 */
async function recordParts({ path, ...change }, place) {
  const [object] = targetOf(path);
  if (!object) return [];
  const description = /** @type {Description | null} */ (await orNothing(call(`/objects/${object}/describe`)));
  const before = recordOf(change.before);
  const after = recordOf(change.record);
  if (!after) return [];
  const rows = await Promise.all(
    changedFields(before, after).map((name) => {
      const field = description?.fields.find((one) => one.apiName === name);
      return row(name, field, before, after, place);
    }),
  );
  return rows.length > 0 ? [table(['Field', 'Before', 'After'], rows)] : [];
}

/** Kept by the platform, and different after every change. */
const KEPT = new Set(['id', 'createdAt', 'createdById', 'updatedAt', 'updatedById', 'recordVersion']);

/**
 * @param {Record<string, unknown> | null} before
 * @param {Record<string, unknown>} after
 */
const changedFields = (before, after) =>
  Object.keys(after).filter(
    (name) => !KEPT.has(name) && JSON.stringify(before?.[name] ?? null) !== JSON.stringify(after[name] ?? null),
  );

/**
 * @param {string} name
 * @param {DescribedField | undefined} field
 * @param {Record<string, unknown> | null} before
 * @param {Record<string, unknown>} after
 * @param {Place} place
 */
async function row(name, field, before, after, place) {
  const [old, proposed] = await Promise.all([
    written(before?.[name], field, before, place),
    written(after[name], field, after, place),
  ]);
  return tableRow(field?.label ?? name, old, proposed);
}

/**
 * @param {unknown} value
 * @param {DescribedField | undefined} field
 * @param {Record<string, unknown> | null} record
 * @param {Place} place
 * @returns {Promise<string>}
 */
async function written(value, field, record, place) {
  const labels = field?.picklistValues;
  const labelOf = (/** @type {unknown} */ one) => labels?.find((item) => item.value === one)?.label ?? one;
  const target = field?.referenceTo?.length === 1 ? field.referenceTo[0] : undefined;
  if (typeof value === 'string' && target) return nameOf(target, value);
  const shown = Array.isArray(value) ? value.map(labelOf) : labelOf(value);
  const currency = typeof record?.['currencyCode'] === 'string' ? record['currencyCode'] : null;
  const fieldType = field?.fieldType ?? 'text';
  return text(shown, { key: '', label: '', role: 'dimension', fieldType, currency }, place);
}

/**
 * @param {string} name
 * @param {string} before
 * @param {string} after
 */
const tableRow = (name, before, after) =>
  element(
    'tr',
    {},
    element('th', { scope: 'row' }, foreign(name)),
    element('td', {}, element('del', {}, foreign(before))),
    element('td', {}, element('ins', {}, foreign(after))),
  );

/**
 * @param {string[]} headings
 * @param {HTMLElement[]} rows
 */
const table = (headings, rows) =>
  element(
    'table',
    { class: 'changes' },
    element('thead', {}, element('tr', {}, ...headings.map((one) => element('th', { scope: 'col' }, one)))),
    element('tbody', {}, ...rows),
  );

const TITLES = {
  creates: 'Is created',
  updates: 'Is changed',
  deletes: 'Is deleted',
  blocked: 'Blocks the deployment',
  warnings: 'Warnings',
};

/** @param {Preview | null} preview */
const planParts = (preview) => [
  ...PROBLEMS.flatMap((list) => section(TITLES[list], (preview?.[list] ?? []).map(problemPart))),
  ...CHANGES.flatMap((list) => section(TITLES[list], (preview?.[list] ?? []).map(changePart))),
];

/**
 * @param {string} title
 * @param {HTMLElement[]} parts
 */
const section = (title, parts) =>
  parts.length === 0 ? [] : [element('h3', {}, `${title} (${parts.length})`), ...parts];

/** @param {PlanChange} change */
const changePart = ({ type, fullName, properties, destructive, impact }) =>
  details(
    `${type} ${fullName}`,
    ...(destructive
      ? [element('p', { class: 'risk-high' }, `Deletes data${impact.records ? ` of ${impact.records} records` : ''}.`)]
      : []),
    table(
      ['Property', 'Before', 'After'],
      properties.map(({ name, from, to }) => tableRow(name, setting(from), setting(to))),
    ),
  );

/** @param {unknown} value */
const setting = (value) => {
  if (value === null) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
};

/** @param {PlanProblem} problem */
const problemPart = ({ type, fullName, message, remedy }) =>
  element('p', {}, foreign(`${type} ${fullName}: ${[message, remedy].filter(Boolean).join(' ')}`));

/**
 * @param {string} title
 * @param {...Node} parts
 */
const details = (title, ...parts) => element('details', {}, element('summary', {}, foreign(title)), ...parts);

/** @type {Record<string, string>} */
const EFFECTS = {
  create: 'Creates',
  update: 'Changes',
  delete: 'Deletes',
  transition: 'Changes the state of',
  notification: 'Sends a notification about',
  event: 'Sends an event about',
};

/** @param {Preview | null} preview */
function verdict(preview) {
  if (preview === null) return [element('p', {}, 'This operation cannot be tried out: there is no preview.')];
  /** @type {Node[]} */
  const parts = [];
  const list = (/** @type {string} */ title, /** @type {string[]} */ items) => {
    if (items.length > 0)
      parts.push(element('h3', {}, title), element('ul', {}, ...items.map((item) => element('li', {}, foreign(item)))));
  };
  list(
    'Effects',
    (preview.effects ?? []).map(
      ({ kind, objectApiName, count }) =>
        `${EFFECTS[kind] ?? kind} ${objectApiName}${count === undefined ? '' : ` (${count})`}`,
    ),
  );
  list(
    'Possible duplicates',
    (preview.duplicates ?? []).flatMap(({ label, matches }) =>
      matches.map(({ displayName, score }) => `${displayName ?? 'A record'} (${label}, ${Math.round(score * 100)} %)`),
    ),
  );
  list(
    'At this moment it would be refused',
    (preview.errors ?? []).map(({ message }) => message),
  );
  return parts;
}

/** @param {Approval} approval */
function requestPart({ method, path, request, fingerprint }) {
  const { query, headers, body } = request;
  const text = `${method} ${path}\n${JSON.stringify({ query, headers, body }, null, 2)}\n\n${fingerprint}`;
  return details('The request as it would be executed', element('pre', { tabindex: '0' }, text));
}
