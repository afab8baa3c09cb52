/** The known name closest to a misspelt one. */
import { distance } from 'fastest-levenshtein';

const NAME_CHARS_MAX = 100;

/**
 * The most similar of some names, where one is so similar that the other is likely a slip: a suffix such as `__c` left
 * out, or few characters that differ. Looks at `namesMax` names at most.
 */
export function similarName(name: string, names: Iterable<string>, namesMax = 1_000): string | null {
  if (name.length > NAME_CHARS_MAX) return null;
  const meant = bare(name);
  const most = Math.min(3, Math.floor((meant.length + 1) / 3));
  let best: string | null = null;
  let least = most + 1;
  let left = namesMax;
  for (const one of names) {
    if (left-- <= 0) break;
    if (one === name || Math.abs(one.length - name.length) > most + SUFFIX_CHARS) continue;
    const far = distance(meant, bare(one));
    if (far < least) [best, least] = [one, far];
  }
  return best;
}

const SUFFIX_CHARS = '__c'.length;

const bare = (name: string): string => name.toLowerCase().replace(/__c$/, '');
