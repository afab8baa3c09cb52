/** Sample invoices with their lines, payments and credit notes. */
import type { Account } from './accounts.ts';
import type { Order } from './orders.ts';
import type { Choices } from './random.ts';
import { DAY, decimal, digits, HOUR, isoDate, isoTime, money, numbered, sum, workingMoment } from './values.ts';
import type { Row, Workbook } from './workbook.ts';

interface Payment {
  readonly at: number;
  readonly cents: number;
}

interface Invoice {
  readonly id: string;
  readonly order: Order;
  readonly issuedAt: number;
  readonly dueAt: number;
  readonly status: string;
  readonly total: number;
  readonly paid: readonly Payment[];
}

/** Invoices of the orders that have been shipped, oldest first. */
export function makeInvoices(book: Workbook, orders: readonly Order[]): void {
  const random = book.choices('Invoice');
  const rows = book.sheet('Invoice__c');
  const lineRows = book.sheet('InvoiceLine__c');
  const payments = book.sheet('Payment__c');
  const creditNotes = book.sheet('CreditNote__c');
  const booked: { at: number; owner: string; values: Record<string, unknown> }[] = [];
  for (const { order, issuedAt } of shippedOrders(book, random, orders)) {
    const id = book.nextId(rows, 'Invoice__c', issuedAt);
    const invoice = { id, order, issuedAt, ...fateOf(book, random, order, issuedAt) };
    addInvoice(book, rows, invoice);
    addLines(book, lineRows, invoice);
    if (invoice.status === 'canceled') addCreditNote(book, creditNotes, invoice);
    for (const payment of invoice.paid)
      booked.push({
        at: payment.at,
        owner: order.account.owner,
        values: paymentValues(book, random, invoice, payment),
      });
  }
  booked.sort((a, b) => a.at - b.at);
  for (const { at, owner, values } of booked)
    book.add(payments, 'Payment__c', owner, at, at, { name: numbered('PAY-', payments.length + 1, 5), ...values });
}

const shippedOrders = (
  book: Workbook,
  random: Choices,
  orders: readonly Order[],
): { order: Order; issuedAt: number }[] =>
  orders
    .flatMap((order) =>
      order.shippedAt === null
        ? []
        : [{ order, issuedAt: Math.min(order.shippedAt + random.integer(0, 3) * DAY, book.end - HOUR) }],
    )
    .sort((a, b) => a.issuedAt - b.issuedAt || (a.order.id < b.order.id ? -1 : 1));

/** Outcome of an invoice: due date, payments, and resulting state. */
function fateOf(
  book: Workbook,
  random: Choices,
  order: Order,
  issuedAt: number,
): Pick<Invoice, 'dueAt' | 'status' | 'total' | 'paid'> {
  const total = order.net + order.tax;
  const dueAt = issuedAt + termDays(order.account) * DAY;
  // The newest ones are still being written.
  const draft = issuedAt > book.end - 4 * DAY && order.status === 'fulfilled' && random.chance(0.5);
  if (draft) return { dueAt, status: 'draft', total, paid: [] };
  if (random.chance(0.008)) return { dueAt, status: 'canceled', total, paid: [] };
  const paid = paymentsOf(book, random, total, issuedAt, dueAt);
  const daysLate = daysLateOf(book, dueAt);
  if (sum(paid.map((payment) => payment.cents)) === total) return { dueAt, status: 'paid', total, paid };
  if (daysLate <= 0) return { dueAt, status: 'sent', total, paid };
  return { dueAt, status: daysLate > 60 && random.chance(0.4) ? 'disputed' : 'overdue', total, paid };
}

const daysLateOf = ({ end }: Workbook, dueAt: number): number => end / DAY - Math.floor(dueAt / DAY);

function paymentsOf(book: Workbook, random: Choices, total: number, issuedAt: number, dueAt: number): Payment[] {
  const paid: Payment[] = [];
  const disputed = random.chance(0.006);
  const slow = random.chance(0.12);
  const late = slow ? random.integer(5, 60) : random.integer(-12, 4);
  const lastAt = Math.max(issuedAt + DAY, workingMoment(random, dueAt + late * DAY));
  const never = disputed || random.chance(0.015);
  const inParts = random.chance(0.07);
  if (inParts) {
    const first = Math.round((total * random.integer(30, 60)) / 100);
    const firstAt = Math.max(issuedAt + DAY, lastAt - random.integer(5, 25) * DAY);
    paid.push({ at: firstAt, cents: first });
    if (!never) paid.push({ at: Math.max(lastAt, firstAt), cents: total - first });
  } else if (!never) paid.push({ at: lastAt, cents: total });
  return paid.filter(({ at }) => at < book.end);
}

function addInvoice(book: Workbook, rows: Row[], invoice: Invoice): void {
  const { id: _, order, issuedAt, dueAt, status, total, paid } = invoice;
  const { account } = order;
  const draft = status === 'draft';
  const sentAt = draft ? null : issuedAt + HOUR;
  const lastPaid = paid.at(-1)?.at;
  const number = rows.length + 1;
  book.add(rows, 'Invoice__c', account.owner, issuedAt, lastPaid ?? sentAt ?? issuedAt, {
    name: numbered('INV-', number, 5),
    AccountId__c: account.row.id,
    SalesOrderId__c: order.id,
    Status__c: status,
    IssueDate__c: isoDate(issuedAt),
    DueDate__c: isoDate(dueAt),
    SentAt__c: sentAt === null ? null : isoTime(sentAt),
    PaidOn__c: status === 'paid' && lastPaid !== undefined ? isoDate(lastPaid) : null,
    PaymentTerms__c: account.terms,
    CustomerReference__c: order.reference,
    CurrencyIsoCode__c: account.currency,
    Amount__c: money(order.net),
    SentAmount__c: draft ? null : money(total),
    DunningLevel__c:
      status === 'overdue' || status === 'disputed' ? Math.min(3, Math.floor(daysLateOf(book, dueAt) / 14)) : 0,
    BillingEmail__c: account.row['invoiceEmail'] ?? account.row['email'],
    BillingAddress__c: account.address,
    LedgerNumber__c: draft ? null : `${new Date(issuedAt).getUTCFullYear()}-${String(number).padStart(6, '0')}`,
    Region__c: account.country.region,
    Notes__c: status === 'disputed' ? 'Customer complains about damaged goods; credit note under discussion.' : null,
  });
}

function addLines(book: Workbook, rows: Row[], { id, order, issuedAt }: Invoice): void {
  const { account } = order;
  for (const line of order.lines)
    book.add(rows, 'InvoiceLine__c', account.owner, issuedAt, issuedAt, {
      name: numbered('INL-', rows.length + 1, 6),
      InvoiceId__c: id,
      SalesOrderLineId__c: line.id,
      Position__c: line.position,
      ProductId__c: line.product.row.id,
      Description__c: line.product.name,
      Quantity__c: decimal(line.quantity, 1_000, 3),
      UnitOfMeasure__c: line.product.line.unitOfMeasure,
      CurrencyIsoCode__c: account.currency,
      UnitPrice__c: money(line.unitPrice),
      TaxRate__c: decimal(line.taxRate * 100, 100, 2),
    });
}

function addCreditNote(book: Workbook, rows: Row[], { id, order, issuedAt, total }: Invoice): void {
  const { account } = order;
  const creditedAt = Math.min(issuedAt + 5 * DAY, book.end - HOUR);
  book.add(rows, 'CreditNote__c', account.owner, creditedAt, creditedAt, {
    name: numbered('CN-', rows.length + 1, 5),
    InvoiceId__c: id,
    Reason__c: 'canceled',
    IssueDate__c: isoDate(creditedAt),
    CurrencyIsoCode__c: account.currency,
    Amount__c: money(total),
    TaxAmount__c: money(order.tax),
  });
}

function paymentValues(
  book: Workbook,
  random: Choices,
  { id, order: { account }, total }: Invoice,
  { at, cents }: Payment,
): Record<string, unknown> {
  return {
    InvoiceId__c: id,
    AccountId__c: account.row.id,
    Status__c: at > book.end - 3 * DAY ? 'received' : 'cleared',
    Method__c: random.weighted(account.currency === 'USD' ? METHODS_USD : METHODS_EUR),
    ReceivedOn__c: isoDate(at),
    CurrencyIsoCode__c: account.currency,
    Amount__c: money(cents),
    BankReference__c: `BNK${digits(random, 10)}`,
    Notes__c: cents < total ? 'Part payment.' : null,
  };
}

/** Days that the account has for paying. */
function termDays({ terms }: Account): number {
  const days = TERM_DAYS[terms];
  if (days === undefined) throw new Error(`The payment terms ${terms} have no number of days.`);
  return days;
}

const TERM_DAYS: Readonly<Record<string, number>> = {
  immediate: 0,
  net14: 14,
  net30: 30,
  net45: 45,
  net60: 60,
  prepaid: 0,
};

const METHODS_EUR = [
  ['bankTransfer', 78],
  ['directDebit', 17],
  ['card', 5],
] as const;

const METHODS_USD = [
  ['bankTransfer', 52],
  ['check', 30],
  ['card', 18],
] as const;
