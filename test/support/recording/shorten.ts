/** Leaves out of an answer what an example can do without, and says so. */
import type { Exchange } from '../../../contracts/examples.ts';

/** Characters of a list, or of a mapping of names to parts of one form, that is shown as a whole. */
const WHOLE_MAX = 1_500;
const KEPT = 2;
const MAPPING_MIN = 6;
const TEXT_MAX = 1_200;
const TEXT_KEPT = 400;

type Left = NonNullable<Exchange['shortened']>[number];

/** `show`: the only members of the body that are kept. */
export function shorten(exchange: Exchange, show: readonly string[] | null): Exchange {
  const { request, response } = exchange;
  if (response.body === undefined) return exchange;
  const left: Left[] = [];
  const body = shortened(show ? only(response.body, show, left) : response.body, '', left);
  return { request, response: { ...response, body }, ...(left.length > 0 ? { shortened: left } : {}) };
}

function only(body: unknown, show: readonly string[], left: Left[]): unknown {
  const entries = Object.entries(body as object);
  const kept = entries.filter(([name]) => show.includes(name));
  left.push({ pointer: '', kept: kept.length, of: entries.length });
  return Object.fromEntries(kept);
}

function shortened(value: unknown, pointer: string, left: Left[]): unknown {
  if (typeof value === 'string' && value.length > TEXT_MAX) {
    left.push({ pointer, kept: TEXT_KEPT, of: value.length });
    return value.slice(0, TEXT_KEPT);
  }
  if (typeof value !== 'object' || value === null) return value;
  const isLong = JSON.stringify(value).length > WHOLE_MAX;
  if (Array.isArray(value)) {
    const kept = isLong ? value.slice(0, KEPT) : value;
    if (kept.length < value.length) left.push({ pointer, kept: kept.length, of: value.length });
    return kept.map((one, i) => shortened(one, `${pointer}/${i}`, left));
  }
  const entries = Object.entries(value);
  const isMapping =
    isLong &&
    entries.length >= MAPPING_MIN &&
    entries.every(([, one]) => typeof one === 'object' && one !== null && !Array.isArray(one));
  const kept = isMapping ? entries.slice(0, KEPT) : entries;
  if (isMapping) left.push({ pointer, kept: kept.length, of: entries.length });
  const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
  return Object.fromEntries(kept.map(([key, one]) => [key, shortened(one, `${pointer}/${escaped(key)}`, left)]));
}
