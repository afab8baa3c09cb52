/**
 * Answers that are worked out once: about things that never change, such as a snapshot and its parts, and that take their
 * answers along when they are forgotten.
 */

/** A function of one thing. */
export function memoize<K extends object, V>(work: (of: K) => V): (of: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (of) => {
    let found = known.get(of);
    if (!found) known.set(of, (found = { value: work(of) }));
    return found.value;
  };
}

/** A function of one thing and of a name beside it. */
export function memoizeByName<K extends object, V>(work: (of: K, name: string) => V): (of: K, name: string) => V {
  const namesOf = memoize((_of: K) => new Map<string, { readonly value: V }>());
  return (of, name) => {
    const known = namesOf(of);
    let found = known.get(name);
    if (!found) known.set(name, (found = { value: work(of, name) }));
    return found.value;
  };
}
