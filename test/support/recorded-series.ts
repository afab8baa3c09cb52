/**
 * Metrics of processes before, during and after a failure, as series on which promtool evaluates the
 * alerts of k8s/monitoring/rules.yaml: as if each of the three had lasted a quarter of an hour as it was measured.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { promtool } from './promtool.ts';
import { read, root } from './sources.ts';

/** The metrics of all processes that answered, by the service of the process. */
export interface Scrape {
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  readonly texts: ReadonlyMap<string, string>;
}

export interface Recorded {
  readonly before: Scrape;
  /** Two, because what counts rises between them. */
  readonly during: readonly [Scrape, Scrape];
  readonly after: Scrape;
}

const RULES = join(root, 'k8s/monitoring/rules.yaml');
/** Of each of the three parts. */
const MINUTES = 15;

type Samples = Map<string, number>;

/** Metrics that the rules use; for a histogram its parts. */
function namesInRules(): ReadonlySet<string> {
  const { groups } = parse(read('k8s/monitoring/rules.yaml')) as { groups: { rules: { expr: string }[] }[] };
  return new Set(
    groups.flatMap(({ rules }) => rules.flatMap(({ expr }) => expr.match(/\b(?:erp|process)_\w+/g) ?? [])),
  );
}

/** Values of the samples that the rules ask for, by series with the labels that Prometheus adds to a target. */
function samplesOf({ texts }: Scrape, wanted: ReadonlySet<string>): Samples {
  const samples: Samples = new Map();
  for (const [instance, text] of texts)
    for (const [, name, labels, value] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm))
      if (wanted.has(name!))
        samples.set(`${name}{instance="${instance}",job="erp"${labels ? `,${labels}` : ''}}`, Number(value));
  return samples;
}

const counts = (series: string): boolean => /^\w+_(?:total|bucket|sum|count)\{/.test(series);

/** In promtool's notation: a value for each minute; `stale` is what a target that is gone leaves, and `_` nothing. */
function valuesOf(
  series: string,
  { before, during, after }: Record<keyof Recorded, Samples | Samples[]>,
  seconds: number,
) {
  const [first, last] = during as Samples[];
  const level = (samples: Samples, had: boolean): string => {
    const value = samples.get(series);
    if (value !== undefined) return `${value}x${MINUTES - 1}`;
    return had ? `stale _x${MINUTES - 1}` : `_x${MINUTES}`;
  };
  const [from, to] = [first!.get(series), last!.get(series)];
  const rise = counts(series) && from !== undefined && to !== undefined ? ((to - from) / seconds) * 60 : 0;
  const failing = rise > 0 ? `${from}+${rise}x${MINUTES - 1}` : level(last!, (before as Samples).has(series));
  const end = (after as Samples).get(series);
  // A counter goes on from where the failure has brought it, unless its process was started anew.
  const stands = rise > 0 && end !== undefined && end >= to! ? from! + rise * MINUTES : end;
  const ending = stands === undefined ? level(after as Samples, last!.has(series)) : `${stands}x${MINUTES - 1}`;
  return `${level(before as Samples, false)} ${failing} ${ending}`;
}

/** The alerts that fire at the end of each part, as `Name` or `Name service kind`. */
interface Fired {
  readonly before: readonly string[];
  readonly during: readonly string[];
  readonly after: readonly string[];
}

/** Labels that say what an alert is about. */
const ABOUT = ['service', 'kind', 'queue', 'operation', 'instance'] as const;

function nameOf(labels: string): string {
  const values = new Map([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key!, value!]));
  return ['alertname', ...ABOUT].flatMap((label) => values.get(label) ?? []).join(' ');
}

/**
 * Which alerts fire. Left out are those of what a cluster does not do within its first minutes: nothing has expired that
 * could be removed.
 */
export function firedAlerts(path: string, recorded: Recorded): Fired {
  const wanted = namesInRules();
  const before = samplesOf(recorded.before, wanted);
  const during = recorded.during.map((scrape) => samplesOf(scrape, wanted));
  const after = samplesOf(recorded.after, wanted);
  const seconds = (recorded.during[1].at - recorded.during[0].at) / 1_000;
  const all = new Set([before, ...during, after].flatMap((samples) => [...samples.keys()]));
  const input_series = [...all].map((series) => ({
    series,
    values: valuesOf(series, { before, during, after }, seconds),
  }));
  const expr = `count by (alertname, ${ABOUT.join(', ')}) (ALERTS{alertstate="firing", alertname!="ErpRetentionStopped"})`;
  const folder = mkdtempSync(join(tmpdir(), 'erp-alerts-'));
  // Expectations that never hold: promtool says what it has found instead.
  const ends = [MINUTES, 2 * MINUTES, 3 * MINUTES].map((minute) => `${minute - 1}m`);
  const promql_expr_test = ends.map((eval_time) => ({ expr, eval_time, exp_samples: [{ labels: 'none', value: 0 }] }));
  const tests = [{ interval: '1m', input_series, promql_expr_test }];
  try {
    writeFileSync(join(folder, 'recorded.yaml'), stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
    const { output } = promtool(path, ['test', 'rules', 'recorded.yaml'], { cwd: folder });
    const [before, during, after] = ends.map((time) => {
      const found = new RegExp(`time: ${time},[^]*?got:(.*)`).exec(output)?.[1];
      if (found === undefined) throw new Error(`promtool: ${output}`);
      return [...found.matchAll(/\{([^}]*)\}/g)].map(([, labels]) => nameOf(labels!)).sort();
    });
    return { before: before!, during: during!, after: after! };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
