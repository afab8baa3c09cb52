/**
 * Results that are computed once per object: for objects that never change, such as a snapshot and its parts. A result
 * is released together with its object.
 */

/** A function of one object. */
export function memoize<K extends object, V>(work: (of: K) => V): (of: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (of) => {
    let found = known.get(of);
    if (!found) known.set(of, (found = { value: work(of) }));
    return found.value;
  };
}

/** A function of one object and a name. */
export function memoizeByName<K extends object, V>(work: (of: K, name: string) => V): (of: K, name: string) => V {
  const namesOf = memoize((_of: K) => new Map<string, { readonly value: V }>());
  return (of, name) => {
    const known = namesOf(of);
    let found = known.get(name);
    if (!found) known.set(name, (found = { value: work(of, name) }));
    return found.value;
  };
}
