/** Sample products and the price lists that name them. */
import { PRODUCT_LINES, type ProductLine } from './products.ts';
import { DAY, decimal, HOUR, isoDate, money, numbered, VAT_RATE, workingMoment } from './values.ts';
import type { Row, Workbook } from './workbook.ts';

/** Dollars for one euro, times a hundred. */
const USD_PER_EUR = 112;
const COMPANY_DOMAIN = 'northwind-office.example';

export interface Product {
  row: Row;
  line: ProductLine;
  name: string;
  /** Cents by currency. */
  list: { EUR: number; USD: number };
  cost: { EUR: number; USD: number };
}

export function makeProducts(book: Workbook): Product[] {
  const random = book.choices('Product');
  const rows = book.sheet('Product');
  const made: Product[] = [];
  for (const line of PRODUCT_LINES) {
    let number = 100;
    for (const [m, model] of line.models.entries())
      for (const [v, variant] of line.variants.entries()) {
        number++;
        const name = `${model} ${variant}`;
        const eur = roundPrice(line.fromCents * (1 + m * 0.22) * (1 + v * 0.37));
        const usd = roundPrice((eur * USD_PER_EUR) / 100);
        const costEur = Math.round((eur * (line.costShare + random.integer(-4, 4))) / 100);
        const launched = book.end - random.integer(800, 3_000) * DAY;
        const discontinued = random.chance(0.04);
        const row = book.add(
          rows,
          'Product',
          book.companyOwner,
          workingMoment(random, launched),
          book.end - 300 * DAY + 9 * HOUR,
          {
            name,
            sku: `${line.skuPrefix}-0${number}`,
            gtin:
              line.unitOfMeasure === 'piece' || line.unitOfMeasure === 'box'
                ? gtin(4_012_345_000_00 + made.length)
                : null,
            family: line.family,
            category: line.category,
            active: !discontinued,
            unitOfMeasure: line.unitOfMeasure,
            currencyIsoCode: 'EUR',
            listPrice: money(eur),
            standardCost: money(costEur),
            targetMargin: decimal(Math.round((100 - line.costShare) * 0.9) * 100, 100, 2),
            taxRate: decimal(VAT_RATE * 100, 100, 2),
            weight:
              line.weightKg === null ? null : decimal(Math.round(line.weightKg * (1 + v * 0.15) * 1_000), 1_000, 3),
            deliveryTime: line.deliveryTime,
            launchedOn: isoDate(launched),
            discontinuedOn: discontinued ? isoDate(book.end - random.integer(10, 200) * DAY) : null,
            dataSheet: `https://docs.${COMPANY_DOMAIN}/${line.skuPrefix.toLowerCase()}-0${number}.pdf`,
            description: `<p><strong>${name.replace('"', '&quot;')}</strong></p><p>${line.about}</p>`,
            attributes:
              line.family === 'services'
                ? null
                : {
                    colour: random.one(['black', 'white', 'light grey', 'oak']),
                    warrantyYears: random.one([2, 3, 5]),
                  },
          },
        );
        made.push({
          row,
          line,
          name,
          list: { EUR: eur, USD: usd },
          cost: { EUR: costEur, USD: Math.round((costEur * USD_PER_EUR) / 100) },
        });
      }
  }
  return made;
}

/** Ids of the price lists by currency. */
export function makePriceLists(book: Workbook, products: readonly Product[]): { EUR: string; USD: string } {
  const random = book.choices('PriceList');
  const lists = book.sheet('PriceList__c');
  const items = book.sheet('PriceListItem__c');
  const createdAt = workingMoment(random, book.end - 740 * DAY);
  const owner = book.companyOwner;
  const ids = { EUR: '', USD: '' };
  let number = 0;
  for (const [currency, name, code, region] of [
    ['EUR', 'Europe', 'EU-2024', 'central'],
    ['USD', 'North America', 'NA-2024', 'americas'],
  ] as const) {
    const list = book.add(lists, 'PriceList__c', owner, createdAt, createdAt, {
      name,
      Code__c: code,
      CurrencyIsoCode__c: currency,
      Region__c: region,
      ValidFrom__c: isoDate(book.end - 735 * DAY),
      ValidTo__c: null,
      Active__c: true,
      Description__c: `Prices in ${currency} before tax.`,
    });
    ids[currency] = list.id;
    for (const product of products)
      book.add(items, 'PriceListItem__c', owner, createdAt, createdAt, {
        name: numbered('PLI-', ++number, 6),
        PriceListId__c: list.id,
        ProductId__c: product.row.id,
        CurrencyIsoCode__c: currency,
        UnitPrice__c: money(product.list[currency]),
        MinimumQuantity__c: '1.000',
        ValidFrom__c: isoDate(book.end - 735 * DAY),
        ValidTo__c: null,
      });
  }
  return ids;
}

/** GTIN-13 of a 12-digit number: the check digit is appended. */
function gtin(number: number): string {
  const text = String(number).padStart(12, '0');
  let total = 0;
  for (let i = 0; i < 12; i++) total += Number(text[i]) * (i % 2 === 0 ? 1 : 3);
  return text + ((10 - (total % 10)) % 10);
}

/** Prices end in .90, those below ten in .x9. */
function roundPrice(cents: number): number {
  if (cents < 1_000) return Math.max(9, Math.round(cents / 10) * 10 - 1);
  return Math.max(90, Math.round(cents / 100) * 100 - 10);
}
