/** Compares the metrics of a process with docs/reference/metrics.md. */
import { read } from './sources.ts';

export interface Served {
  readonly type: string;
  /** Labels of its samples; `le` of buckets left out. Empty where it has no samples yet. */
  readonly labels: ReadonlySet<string>;
  readonly hasSamples: boolean;
}

/** By name, out of the text format. */
export function servedMetrics(text: string): Map<string, Served> {
  const served = new Map<string, { type: string; labels: Set<string>; hasSamples: boolean }>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    served.set(name!, { type: type!, labels: new Set(), hasSamples: false });
  for (const [, sample, labels = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const metric = served.get(sample!) ?? served.get(sample!.replace(/_(bucket|sum|count)$/, ''));
    if (!metric) throw new Error(`${sample} has no type.`);
    metric.hasSamples = true;
    for (const [, label] of labels.matchAll(/(\w+)="/g)) if (label !== 'le') metric.labels.add(label!);
  }
  return served;
}

interface Documented {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  /** A service, or `Every process`. */
  readonly section: string;
}

/** The rows of all tables of docs/reference/metrics.md. */
export function documentedMetrics(): Documented[] {
  return read('docs/reference/metrics.md')
    .split(/^## /m)
    .slice(1)
    .flatMap((text) => {
      const section = text.slice(0, text.indexOf('\n'));
      return [...text.matchAll(/^\| (`[^|]*) \| ([a-z]+) *\| ([^|]*) \|/gm)].flatMap(([, names, type, labels]) =>
        [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => ({
          name: name!,
          type: type!,
          labels: labels!.split(',').flatMap((label) => label.trim() || []),
          section,
        })),
      );
    });
}
