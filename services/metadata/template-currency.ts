/** A template as it is deployed to a tenant whose currency is not the one that the template is written in. */

const WRITTEN_IN = 'EUR';
const VALUES = 'valueSets/Currency.yaml';
const DEFAULT_LINE = '    default: true\n';

/**
 * The tenant's currency becomes the default of new records, and that of dashboards which compare amounts. One that the
 * template does not list is added to the list.
 */
export function inCurrency(files: Record<string, string>, currency: string): Record<string, string> {
  if (currency === WRITTEN_IN) return files;
  return Object.fromEntries(
    Object.entries(files).map(([path, text]) => [
      path,
      path === VALUES
        ? withDefault(text.replace(DEFAULT_LINE, ''), currency)
        : path.startsWith('dashboards/')
          ? text.replaceAll(/\bEUR\b/g, currency)
          : text,
    ]),
  );
}

function withDefault(values: string, currency: string): string {
  const at = values.indexOf(`  - value: ${currency}\n`);
  if (at >= 0) {
    const label = values.indexOf('\n    label: ', at);
    const end = values.indexOf('\n', label + 1) + 1;
    return values.slice(0, end) + DEFAULT_LINE + values.slice(end);
  }
  const label = new Intl.DisplayNames(['en'], { type: 'currency' }).of(currency) ?? currency;
  return `${values}  - value: ${currency}\n    label: ${JSON.stringify(label)}\n${DEFAULT_LINE}`;
}
