/** The currency of a tenant in what a template deploys. Source: docs/reference/tenants.md. */
import assert from 'node:assert/strict';
import { inCurrency } from '../../../services/metadata/template-currency.ts';
import { templateFiles } from '../../../templates/read.ts';

describe('the ERP template of a tenant with another currency', () => {
  let erp: Record<string, string>;
  before(async () => {
    erp = await templateFiles('erp');
  });
  const values = (currency: string): string => inCurrency(erp, currency)['valueSets/Currency.yaml'] ?? '';

  it('uses it as the only default of new records, also where the template does not list it', () => {
    assert.equal(inCurrency(erp, 'EUR'), erp);
    assert.match(values('GBP'), /- value: GBP\n {4}label: Pound sterling\n {4}default: true\n/);
    assert.match(values('JPY'), /- value: JPY\n {4}label: "Japanese Yen"\n {4}default: true\n$/);
    for (const currency of ['GBP', 'JPY']) assert.equal(values(currency).match(/default: true/g)?.length, 1, currency);
  });

  it('compares amounts in it on dashboards', () => {
    for (const [path, text] of Object.entries(inCurrency(erp, 'GBP')))
      if (path.startsWith('dashboards/')) assert.doesNotMatch(text, /\bEUR\b/, path);
    assert.match(inCurrency(erp, 'GBP')['dashboards/Receivables.yaml'] ?? '', /value: GBP/);
  });
});
