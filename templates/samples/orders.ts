/** Sample orders with their lines: two years of them, a little more each month. */
import type { Account } from './accounts.ts';
import type { Product } from './price-lists.ts';
import type { Choices } from './random.ts';
import {
  DAY,
  decimal,
  digits,
  HOUR,
  isoDate,
  isoTime,
  money,
  numbered,
  sum,
  VAT_RATE,
  workingMoment,
} from './values.ts';
import type { Row, Workbook } from './workbook.ts';

interface OrderLine {
  id: string;
  product: Product;
  position: number;
  /** Thousandths. */
  quantity: number;
  unitPrice: number;
  net: number;
  taxRate: number;
  tax: number;
}

export interface Order {
  id: string;
  account: Account;
  status: string;
  reference: string | null;
  orderedAt: number;
  shippedAt: number | null;
  lines: OrderLine[];
  net: number;
  tax: number;
}

/** Inputs of a tenant's orders. */
interface Source {
  readonly book: Workbook;
  readonly random: Choices;
  readonly accounts: readonly Account[];
  readonly products: readonly Product[];
  readonly priceLists: Readonly<Record<Account['currency'], string>>;
  /** Won deals by account. */
  readonly won: ReadonlyMap<string, { id: string; closedAt: number }>;
}

/** A product on its way into an order. */
interface Item {
  readonly product: Product;
  /** Thousandths. */
  readonly quantity: number;
  /** Hundredths of a percent. */
  readonly discount: number;
  readonly unitPrice: number;
}

export function makeOrders(given: Omit<Source, 'random'>): Order[] {
  const { book, accounts, products } = given;
  const source: Source = { ...given, random: book.choices('SalesOrder') };
  const { random } = source;
  const rows = book.sheet('SalesOrder__c');
  const lineRows = book.sheet('SalesOrderLine__c');
  const customers = accounts.filter((a) => a.row['type'] === 'customer');
  const sellable = products.filter((p) => p.row['active'] === true);
  // Two years, a little more each month than the month before; oldest first, so that numbers follow time.
  const days = Array.from({ length: book.size.orders }, () => Math.floor(-730 * (1 - random.fraction() ** 0.8)) - 1);
  days.sort((a, b) => a - b);
  const moments = days.map((day) => workingMoment(random, book.end + day * DAY)).sort((a, b) => a - b);
  return moments.map((orderedAt) => {
    // A few customers order often, most of them now and then.
    const account = random.one(customers, 1.8);
    const age = Math.floor((book.end - orderedAt) / DAY);
    const status = statusOf(random, age);
    const shippedAt = status === 'fulfilled' || status === 'closed' ? shippedAfter(random, orderedAt, book.end) : null;
    const items = chooseItems(random, account, sellable);
    const id = book.nextId(rows, 'SalesOrder__c', orderedAt);
    const lines = items.map((item, index) => addLine(book, lineRows, { id, account, orderedAt }, item, index));
    const order = { id, account, status, orderedAt, shippedAt, lines, net: sum(lines.map((line) => line.net)) };
    const cost = sum(items.map((item) => Math.round((item.product.cost[account.currency] * item.quantity) / 1_000)));
    const reference = addOrder(source, rows, order, cost, shippedAt ?? orderedAt + Math.min(age, 2) * DAY);
    return { ...order, reference, tax: sum(lines.map((line) => line.tax)) };
  });
}

const shippedAfter = (random: Choices, orderedAt: number, end: number): number =>
  Math.min(workingMoment(random, orderedAt + random.integer(3, 21) * DAY), end - random.integer(1, 9) * HOUR);

function chooseItems(random: Choices, account: Account, sellable: readonly Product[]): Item[] {
  const projectLine = random.chance(0.15);
  const count = 2 + Math.floor(7 * random.fraction() ** 1.15);
  const chosen = new Set<Product>();
  while (chosen.size < Math.min(count, sellable.length)) chosen.add(random.one(sellable));
  return [...chosen].map((product) => {
    const [low, high] = product.line.quantity;
    const halves = product.line.unitOfMeasure === 'hour' || product.line.unitOfMeasure === 'day';
    const whole = random.integer(low, projectLine ? high : Math.max(low, Math.ceil(high / 3)));
    const quantity = whole * 1_000 + (halves && random.chance(0.3) ? 500 : 0);
    const discount = account.discount + (whole >= high * 0.6 ? 300 : 0);
    const unitPrice = Math.round((product.list[account.currency] * (10_000 - discount)) / 10_000);
    return { product, quantity, discount, unitPrice };
  });
}

function addLine(
  book: Workbook,
  rows: Row[],
  order: Pick<Order, 'id' | 'account' | 'orderedAt'>,
  { product, quantity, discount, unitPrice }: Item,
  index: number,
): OrderLine {
  const { account, orderedAt } = order;
  const { currency } = account;
  const taxRate = account.country.code === 'DE' ? VAT_RATE : 0;
  const net = Math.round((unitPrice * quantity) / 1_000);
  const position = (index + 1) * 10;
  const { id } = book.add(rows, 'SalesOrderLine__c', account.owner, orderedAt, orderedAt, {
    name: numbered('SOL-', rows.length + 1, 6),
    SalesOrderId__c: order.id,
    Position__c: position,
    ProductId__c: product.row.id,
    Description__c: product.name,
    Quantity__c: decimal(quantity, 1_000, 3),
    UnitOfMeasure__c: product.line.unitOfMeasure,
    CurrencyIsoCode__c: currency,
    ListPrice__c: money(product.list[currency]),
    DiscountPercent__c: decimal(discount, 100, 2),
    UnitPrice__c: money(unitPrice),
    TaxRate__c: decimal(taxRate * 100, 100, 2),
    UnitCost__c: money(product.cost[currency]),
  });
  return { id, product, position, quantity, unitPrice, net, taxRate, tax: Math.round((net * taxRate) / 100) };
}

/** Returns the customer's reference, which the invoice repeats. */
function addOrder(
  { book, random, won, priceLists }: Source,
  rows: Row[],
  order: Omit<Order, 'reference' | 'tax'>,
  cost: number,
  updatedAt: number,
): string | null {
  const { account, orderedAt, shippedAt, status, net } = order;
  const deal = won.get(account.row.id);
  const fromDeal = deal !== undefined && deal.closedAt <= orderedAt && deal.closedAt > orderedAt - 60 * DAY;
  const reference = random.chance(0.7) ? customerReference(random, orderedAt) : null;
  book.add(rows, 'SalesOrder__c', account.owner, orderedAt, updatedAt, {
    name: numbered('SO-', rows.length + 1, 5),
    AccountId__c: account.row.id,
    ContactId__c: account.contacts.length ? random.one(account.contacts) : null,
    OpportunityId__c: fromDeal ? deal.id : null,
    PriceListId__c: priceLists[account.currency],
    Status__c: status,
    ApprovedAmount__c: ['approved', 'fulfilled', 'closed'].includes(status) ? money(net) : null,
    Priority__c: random.weighted([
      ['normal', 85],
      ['urgent', 10],
      ['low', 5],
    ]),
    Channel__c: random.weighted([
      ['fieldSales', 35],
      ['email', 30],
      ['phone', 20],
      ['webShop', 15],
    ]),
    OrderDate__c: isoDate(orderedAt),
    RequestedDeliveryDate__c: isoDate(workingMoment(random, orderedAt + random.integer(7, 35) * DAY)),
    ShippedAt__c: shippedAt === null ? null : isoTime(shippedAt),
    CustomerReference__c: reference,
    PaymentTerms__c: account.terms,
    ShippingAddress__c: account.shipping,
    CurrencyIsoCode__c: account.currency,
    MarginPercent__c: decimal(Math.round(((net - cost) * 10_000) / net), 100, 2),
    Notes__c: random.chance(0.12) ? random.one(ORDER_REMARKS) : null,
  });
  return reference;
}

const ORDER_REMARKS = [
  'Deliver together with the next order if possible.',
  'Customer collects.',
  'Call half an hour before arrival.',
  'Assembly on the day of delivery.',
];

function statusOf(random: Choices, ageDays: number): string {
  if (ageDays > 3 && random.chance(0.05)) return 'canceled';
  if (ageDays > 45) return random.chance(0.985) ? 'closed' : 'fulfilled';
  if (ageDays > 22)
    return random.weighted([
      ['closed', 45],
      ['fulfilled', 45],
      ['approved', 10],
    ]);
  if (ageDays > 6)
    return random.weighted([
      ['fulfilled', 30],
      ['approved', 50],
      ['submitted', 20],
    ]);
  return random.weighted([
    ['approved', 25],
    ['submitted', 40],
    ['draft', 35],
  ]);
}

function customerReference(random: Choices, at: number): string {
  const year = new Date(at).getUTCFullYear();
  return random.one([`PO-${digits(random, 6)}`, `${year}/${digits(random, 4)}`, `45${digits(random, 8)}`]);
}
