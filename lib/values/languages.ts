/** Languages of the texts that the platform writes to people. */

/** The language of the first of these locales that there is one for; the first language for all others. */
export function languageFor<L extends { readonly tag: string }>(
  languages: readonly [L, ...L[]],
  ...locales: readonly (string | null | undefined)[]
): L {
  for (const locale of locales) {
    const [primary] = (locale ?? '').toLowerCase().split(/[-_]/);
    const found = languages.find(({ tag }) => tag === primary);
    if (found) return found;
  }
  return languages[0];
}
