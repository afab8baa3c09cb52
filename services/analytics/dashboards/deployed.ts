/**
 * Dashboards that come with deployments. metadata keeps the components; this service takes over what has changed when a
 * request shows that the configuration has a newer version, so that an event that was lost costs nothing.
 */

import { LRUCache } from 'lru-cache';
import type { CreateBody } from '../../../contracts/analytics.ts';
import type { MetadataActions } from '../../../contracts/metadata.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { NOW } from '../../../mixins/models/sequelize.ts';
import { contentOf } from './content.ts';
import { deployedDashboardsSql, deployedVersionSql, setDeployedVersionSql } from './deployed.sql.ts';
import { lockTenantSql } from './read.sql.ts';
import { insertDashboard, publishDraft, updateDashboard, updateDraft } from './store.ts';

type ListComponents = (
  asked: MetadataActions['metadata.dashboards.list']['params'],
) => Promise<MetadataActions['metadata.dashboards.list']['result']>;

interface Component {
  readonly apiName: string;
  readonly updatedById: string | null;
  /** null: as it was. */
  readonly body: CreateBody | null;
}

const TENANTS_MAX = 20_000;
/** A take-over that failed is not tried anew by each request. */
const RETRY_AFTER_MS = 5_000;

export class DeployedDashboards {
  readonly #database: Database;
  readonly #failed: (error: unknown, tenantId: string) => void;
  /** By tenant: the version whose dashboards are known to be here. */
  readonly #taken = new LRUCache<string, number>(entryBound(TENANTS_MAX));
  readonly #underway = new Map<string, Promise<void>>();
  /** Tenants whose take-over has failed a moment ago. */
  readonly #failedLately = new LRUCache<string, true>({ ...entryBound(TENANTS_MAX), ttl: RETRY_AFTER_MS });

  constructor(database: Database, failed: (error: unknown, tenantId: string) => void) {
    this.#database = database;
    this.#failed = failed;
    database.onReplaced(() => this.#taken.clear());
  }

  /** Takes over what deployments up to this version have changed. Without metadata, things stay as they are. */
  async upTo(version: number, tenantId: string, list: ListComponents): Promise<void> {
    // Another take-over under way, here or in another process, may be of an earlier version.
    while ((this.#taken.get(tenantId) ?? -1) < version && !this.#failedLately.has(tenantId))
      await (this.#underway.get(tenantId) ?? this.#begin(tenantId, version, list));
  }

  #begin(tenantId: string, wanted: number, list: ListComponents): Promise<void> {
    const underway = this.#take(tenantId, wanted, list)
      .then((stored) => void this.#taken.set(tenantId, stored))
      .catch((error: unknown) => {
        this.#failedLately.set(tenantId, true);
        this.#failed(error, tenantId);
      })
      .finally(() => this.#underway.delete(tenantId));
    this.#underway.set(tenantId, underway);
    return underway;
  }

  /** Answers the version whose dashboards are here afterwards. */
  async #take(tenantId: string, wanted: number, list: ListComponents): Promise<number> {
    const since = await this.#database.shared('analytics', tenantId, (tx) => takenVersion(tx, tenantId));
    if (since >= wanted) return since;
    const { version, components } = await componentsSince(tenantId, since, list);
    if (version < wanted) throw new Error(`metadata listed the dashboards of version ${version}, not of ${wanted}`);
    return this.#database.shared('analytics', tenantId, async (tx) => {
      await tx.query(lockTenantSql(tenantId));
      // Another process may have been faster, also with an earlier version.
      const stored = await takenVersion(tx, tenantId);
      if (stored !== since) return stored;
      await takeOver(tx, tenantId, components);
      await tx.query(setDeployedVersionSql(tenantId, version));
      return version;
    });
  }
}

async function takenVersion(tx: Tx, tenantId: string): Promise<number> {
  return (await tx.first<{ version: number }>(deployedVersionSql(tenantId)))?.version ?? 0;
}

/** All components, as they were at one version. */
async function componentsSince(
  tenantId: string,
  since: number,
  list: ListComponents,
): Promise<{ version: number; components: Component[] }> {
  const components: Component[] = [];
  let version: number | null = null;
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<ListComponents>> = await list({
      tenantId,
      since,
      ...(after === null ? {} : { after }),
    });
    // Of two versions the earlier one: what the later one changed is asked for again.
    version = Math.min(version ?? page.version, page.version);
    for (const { body, ...component } of page.dashboards)
      components.push({ ...component, body: body === null ? null : bodyOf(body) });
    after = page.next;
  } while (after !== null);
  return { version, components };
}

async function takeOver(tx: Tx, tenantId: string, components: readonly Component[]): Promise<void> {
  const here = await tx.all<{ dashboardId: string; apiName: string; revision: number }>(
    deployedDashboardsSql(tenantId),
  );
  const byName = new Map(here.map((dashboard) => [dashboard.apiName, dashboard]));
  const names = new Set(components.map(({ apiName }) => apiName));
  for (const { apiName, dashboardId, revision } of here)
    if (!names.has(apiName))
      await updateDashboard(
        tx,
        { tenantId, dashboardId },
        { revision: revision + 1, deletedAt: NOW },
        { userId: null },
      );
  for (const { apiName, updatedById: userId, body } of components) {
    if (!body) continue;
    const content = contentOf(body, null);
    const known = byName.get(apiName);
    const key = { tenantId, dashboardId: known?.dashboardId ?? uuidv7() };
    const revision = (known?.revision ?? 0) + 1;
    if (known) await updateDraft(tx, key, content);
    else await insertDashboard(tx, key, content, { userId });
    await publishDraft(tx, key);
    const { visibility } = content;
    const published = { publishedRevision: revision, publishedAt: NOW, publishedById: userId };
    await updateDashboard(tx, key, { apiName, visibility, revision, ...published }, { userId });
  }
}

/** A component says the same as the body of a request, without the lists that are empty. */
function bodyOf(json: string): CreateBody {
  const body: CreateBody = JSON.parse(json);
  const widgets = (body.widgets ?? []).map(({ query, ...widget }) => ({
    ...widget,
    query: query ? { ...query, dimensions: query.dimensions ?? [] } : null,
  }));
  return { ...body, widgets };
}
