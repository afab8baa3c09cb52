/** The alerts and the dashboard ask for metrics that processes serve, and every alert says what to do. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { prometheusRuleFile } from '../../../scripts/manifests.ts';
import { documentedMetrics } from '../../support/metrics.ts';
import { findPromtool, promtool } from '../../support/promtool.ts';
import { read, root } from '../../support/sources.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

const FOLDER = 'k8s/monitoring';
const rulesText = read(`${FOLDER}/rules.yaml`);
const rules = (parse(rulesText) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read(`${FOLDER}/dashboard.json`)) as {
  panels: Panel[];
  templating: { list: { name: string; type: string; query: string | { query: string } }[] };
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

// Served by each service, as test/service/metrics.test.ts compares.
const documented = documentedMetrics();
const known = new Map(
  documented.flatMap(({ name, type, labels }) =>
    type === 'histogram'
      ? ['_bucket', '_sum', '_count'].map((suffix): [string, readonly string[]] => [name + suffix, [...labels, 'le']])
      : [[name, labels] as [string, readonly string[]]],
  ),
);
const metricsOf = (expr: string): string[] => expr.match(/\b(?:erp|process|nodejs)_\w+/g) ?? [];
/** Every scraper gives them to what it scrapes. */
const OF_TARGETS = ['instance', 'job'];

describe('the alerts for Prometheus', () => {
  it('query existing metrics and labels', () => {
    for (const { alert, expr } of rules) {
      const names = metricsOf(expr);
      assert.notEqual(names.length, 0, alert);
      const labels = new Set([
        ...OF_TARGETS,
        ...names.flatMap((name) => known.get(name) ?? assert.fail(`${alert}: ${name}`)),
      ]);
      for (const [, list] of expr.matchAll(/\b(?:by|on) ?\(([^)]*)\)/g))
        for (const label of list!.split(',')) assert.ok(labels.has(label.trim()), `${alert}: ${label}`);
      for (const [, label] of expr.matchAll(/[{,] ?(\w+)(?:=|!=|=~|!~)"/g))
        assert.ok(labels.has(label!), `${alert}: ${label}`);
    }
  });

  it('each have a severity, a summary, and a runbook entry', () => {
    const page = read('docs/reference/alerts.md');
    const entries = new Map(
      page
        .split(/^### /m)
        .slice(1)
        .map((text) => [text.slice(0, text.indexOf('\n')), text.split(/^## /m)[0]!]),
    );
    assert.deepEqual([...entries.keys()].sort(), rules.map(({ alert }) => alert).sort());
    for (const { alert, labels, annotations } of rules) {
      assert.match(labels.severity, /^(critical|warning)$/, alert);
      assert.match(annotations.summary, /^[A-Z{].*\.$/, alert);
      assert.equal(annotations.runbook, `docs/reference/alerts.md#${alert.toLowerCase()}`);
      for (const part of ['Means:', 'Callers notice:', 'Look at', 'o:'])
        assert.ok(entries.get(alert)!.includes(part), `${alert} lacks ${part}`);
    }
  });

  it('are the same for the Prometheus Operator', () => {
    assert.equal(read(`${FOLDER}/prometheus-rule.yaml`), prometheusRuleFile(rulesText), 'run `npm run manifests`');
  });

  it('are accepted by promtool, and so are their tests', async function () {
    this.timeout(120_000);
    const path = findPromtool();
    if (!path) this.skip();
    const cwd = join(root, FOLDER);
    for (const args of [
      ['check', 'rules', 'rules.yaml'],
      ['test', 'rules', 'rules.test.yaml'],
    ]) {
      const { code, output } = promtool(path, args, { cwd });
      assert.equal(code, 0, output);
      assert.match(output, /SUCCESS/);
    }
  });
});

describe('the dashboard for Grafana', () => {
  it('queries existing metrics', () => {
    assert.ok(queries.length > 50);
    for (const { title, expr } of queries)
      for (const name of metricsOf(expr)) assert.ok(known.has(name), `${title}: ${name}`);
    for (const { type, query } of dashboard.templating.list)
      if (type === 'query')
        for (const name of metricsOf((query as { query: string }).query)) assert.ok(known.has(name), name);
  });

  it('takes its data from the Prometheus that the viewer chooses', () => {
    assert.deepEqual(
      dashboard.templating.list.filter(({ type }) => type === 'datasource').map(({ name, query }) => [name, query]),
      [['datasource', 'prometheus']],
    );
    for (const { title, type, datasource, targets = [] } of dashboard.panels) {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's own notation
      const chosen = '${datasource}';
      if (type !== 'row') assert.equal(datasource?.uid, chosen, title);
      for (const target of targets) assert.equal(target.datasource.uid, chosen, title);
    }
  });

  it('has panels that do not overlap', () => {
    const taken = new Map<string, string>();
    for (const {
      title,
      gridPos: { x, y, w, h },
    } of dashboard.panels) {
      assert.ok(x + w <= 24, title);
      for (let column = x; column < x + w; column++)
        for (let line = y; line < y + h; line++) {
          const place = `${column} ${line}`;
          assert.equal(taken.get(place), undefined, `${title} lies on ${taken.get(place)}`);
          taken.set(place, title);
        }
    }
  });

  it('has queries that Prometheus understands', async function () {
    this.timeout(120_000);
    const path = findPromtool();
    if (!path) this.skip();
    const folder = mkdtempSync(join(tmpdir(), 'erp-dashboard-'));
    try {
      const filled = (expr: string): string =>
        expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(instance|operation)/g, '.*');
      writeFileSync(
        join(folder, 'queries.yaml'),
        stringify({
          groups: [
            { name: 'queries', rules: queries.map(({ expr }, i) => ({ record: `query:${i}`, expr: filled(expr) })) },
          ],
        }),
      );
      const { code, output } = promtool(path, ['check', 'rules', 'queries.yaml'], { cwd: folder });
      assert.equal(code, 0, output);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('k8s/monitoring', () => {
  it('is what kubectl can apply', function () {
    this.timeout(30_000);
    if (spawnSync('kubectl', ['version', '--client'], { stdio: 'ignore' }).error) this.skip();
    const built = execFileSync('kubectl', ['kustomize', FOLDER], { cwd: root, encoding: 'utf8' });
    const kinds = [...built.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind);
    assert.deepEqual(kinds.sort(), ['ConfigMap', 'PodMonitor', 'PrometheusRule']);
  });
});
