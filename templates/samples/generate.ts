/**
 * Sample records of the ERP template: a seller of office furniture in Germany with customers in Europe and North
 * America, and two years of its orders, invoices and payments up to a fixed day. Pure and repeatable: the same
 * arguments give the same records, byte by byte. Amounts are reckoned in cents and every total adds up.
 */

import { type SampleObject, sampleId } from './ids.ts';
import { COUNTRIES, type Country, CULTURES, type Culture, type Town } from './people-and-places.ts';
import { PRODUCT_LINES, type ProductLine } from './products.ts';
import { Choices } from './random.ts';

/** The day on which the sample company stands still. */
export const ANCHOR = Date.UTC(2026, 10, 1);

const DAY = 86_400_000;
const HOUR = 3_600_000;
const VAT_RATE = 19;
/** Dollars for one euro, times a hundred. */
const USD_PER_EUR = 112;

export interface SampleSize {
  /** Number of the set, 0 to 15; it is part of every id and seeds every choice. */
  readonly set: number;
  readonly accounts: number;
  readonly contacts: number;
  readonly orders: number;
  readonly opportunities: number;
  /** Countries of the accounts; all when absent. */
  readonly countries?: readonly string[];
}

/** User ids that own the records, each with a weight. */
export type Owners = readonly (readonly [userId: string, weight: number])[];

/** Rows of one object; objects come in an order in which every reference is to an earlier one or to itself. */
export interface SampleTable {
  readonly objectApiName: SampleObject;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

type Row = Record<string, unknown> & { id: string };

interface Address {
  street: string;
  city: string;
  state: string | null;
  postalCode: string;
  country: string;
}

interface Account {
  row: Row;
  owner: string;
  createdAt: number;
  country: Country;
  town: Town;
  domain: string;
  currency: 'EUR' | 'USD';
  terms: string;
  discount: number;
  address: Address;
  shipping: Address;
  contacts: string[];
}

interface Product {
  row: Row;
  line: ProductLine;
  name: string;
  /** Cents by currency. */
  list: { EUR: number; USD: number };
  cost: { EUR: number; USD: number };
}

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

interface Order {
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

/** All sample tables of one tenant. */
export function generateSamples(size: SampleSize, owners: Owners): SampleTable[] {
  const tables = new Map<SampleObject, Row[]>();
  const sheet = (object: SampleObject): Row[] => {
    const rows: Row[] = [];
    tables.set(object, rows);
    return rows;
  };
  const choices = (object: string): Choices => new Choices(`${size.set}/${object}`);
  const counters = new Map<SampleObject, number>();
  const add = (
    rows: Row[],
    object: SampleObject,
    owner: string,
    createdAt: number,
    updatedAt: number,
    values: Record<string, unknown>,
  ): Row => {
    const counter = (counters.get(object) ?? 0) + 1;
    counters.set(object, counter);
    const row = {
      id: sampleId(size.set, object, counter, createdAt),
      ownerId: owner,
      createdAt: new Date(createdAt).toISOString(),
      createdById: owner,
      updatedAt: new Date(Math.max(createdAt, updatedAt)).toISOString(),
      updatedById: owner,
      ...values,
    };
    rows.push(row);
    return row;
  };

  const accounts = makeAccounts();
  makeContacts();
  const products = makeProducts();
  const priceLists = makePriceLists();
  const won = makeOpportunities();
  const orders = makeOrders();
  makeInvoices();
  return [...tables].filter(([, rows]) => rows.length > 0).map(([name, rows]) => toTable(name, rows));

  function makeAccounts(): Account[] {
    const random = choices('Account');
    const rows = sheet('Account');
    const countries = COUNTRIES.filter((c) => size.countries?.includes(c.code) ?? true).map(
      (c) => [c, c.share] as const,
    );
    const names = new Set<string>();
    const made: Account[] = [];
    for (let i = 0; i < size.accounts; i++) {
      const country = random.weighted(countries);
      const culture: Culture = CULTURES[country.culture];
      const town = random.one(country.towns);
      const type = random.weighted([
        ['customer', 70],
        ['prospect', 22],
        ['partner', 5],
        ['supplier', 3],
      ] as const);
      const [trade, industry] = random.one(culture.trades);
      const legalForm = random.one(culture.legalForms);
      const name = companyName(random, culture, town, trade, legalForm, names);
      const domain = `${slug(name.slice(0, name.length - legalForm.length))}.example`;
      // Customers have been so for two years or more; prospects came lately.
      const age = type === 'prospect' ? random.integer(5, 500) : random.integer(735, 2_200);
      const createdAt = workingMoment(random, ANCHOR - age * DAY);
      const owner = random.weighted(owners);
      const employees = Math.round(4 * 10 ** (random.fraction() * 3.1));
      const currency = country.region === 'americas' ? 'USD' : 'EUR';
      const address: Address = {
        street: streetLine(random, culture),
        city: town.city,
        state: town.state,
        postalCode: town.postalCode,
        country: country.code,
      };
      const shipping = random.chance(0.15) ? { ...address, street: streetLine(random, culture) } : address;
      const terms = random.weighted([
        ['net30', 55],
        ['net14', 22],
        ['net45', 8],
        ['net60', 8],
        ['immediate', 5],
        ['prepaid', 2],
      ] as const);
      const discount = type === 'customer' ? random.weighted(DISCOUNTS) : 0;
      const large = employees > 800;
      const parent = i > 60 && random.chance(0.04) ? made[random.integer(0, 59)] : undefined;
      const row = add(rows, 'Account', owner, createdAt, later(random, createdAt), {
        name,
        accountNumber: `AC-${10_001 + i}`,
        type,
        active: random.chance(0.97),
        industry,
        segments: segmentsOf(random, large, type),
        rating: type === 'supplier' ? null : large ? 'hot' : random.one(['hot', 'warm', 'warm', 'cold']),
        region: country.region,
        country: country.code,
        city: town.city,
        billingAddress: address,
        shippingAddress: shipping,
        location: {
          latitude: round(town.latitude + (random.fraction() - 0.5) * 0.05, 5),
          longitude: round(town.longitude + (random.fraction() - 0.5) * 0.05, 5),
        },
        email: `info@${domain}`,
        invoiceEmail: random.chance(0.8) ? `invoices@${domain}` : null,
        phone: phoneOf(random, town),
        website: `https://www.${domain}`,
        employees,
        annualRevenue: money(employees * random.integer(90_000, 260_000) * 100),
        currencyIsoCode: currency,
        paymentTerms: terms,
        discountPercent: decimal(discount, 100, 2),
        creditLimit: type === 'customer' ? money(random.integer(1, large ? 60 : 12) * 5_000_00) : null,
        foundedOn: isoDate(Date.UTC(random.integer(1919, 2021), random.integer(0, 11), random.integer(1, 28))),
        lastVisitAt: random.chance(0.6) ? isoTime(later(random, createdAt)) : null,
        parentId: parent?.row.id ?? null,
        TaxId__c: country.taxPrefix + digits(random, country.taxDigits),
        description: random.chance(0.25) ? random.one(ACCOUNT_REMARKS) : null,
      });
      made.push({
        row,
        owner,
        createdAt,
        country,
        town,
        domain,
        currency,
        terms,
        discount,
        address,
        shipping,
        contacts: [],
      });
    }
    return made;
  }

  function makeContacts(): void {
    const random = choices('Contact');
    const rows = sheet('Contact');
    for (let i = 0; i < size.contacts; i++) {
      const account = i < accounts.length ? accounts[i]! : random.one(accounts);
      const culture: Culture = CULTURES[account.country.culture];
      const woman = random.chance(0.5);
      const firstName = random.one(woman ? culture.women : culture.men);
      const lastName = random.one(culture.families);
      const [department, titles, roles] = random.weighted(POSITIONS);
      const createdAt = workingMoment(
        random,
        Math.min(account.createdAt + random.integer(1, 200) * DAY, ANCHOR - 4 * DAY),
      );
      const consent = random.chance(0.45);
      const consentAt = workingMoment(random, createdAt + random.integer(1, 90) * DAY);
      const reportsTo = account.contacts.length > 0 && random.chance(0.6) ? account.contacts[0]! : null;
      const row = add(rows, 'Contact', account.owner, createdAt, later(random, createdAt), {
        name: `${firstName} ${lastName}`,
        accountId: account.row.id,
        salutation: random.chance(0.06) ? 'dr' : woman ? 'ms' : 'mr',
        firstName,
        lastName,
        jobTitle: random.one(titles),
        department,
        roles,
        email: `${slug(firstName)}.${slug(lastName)}@${account.domain}`,
        phone: phoneOf(random, account.town),
        mobile: random.chance(0.5) ? `${account.town.dial.split(' ')[0]} 555 ${digits(random, 6)}` : null,
        mailingAddress: random.chance(0.3) ? account.address : null,
        birthDate: random.chance(0.15)
          ? isoDate(Date.UTC(random.integer(1961, 2002), random.integer(0, 11), random.integer(1, 28)))
          : null,
        preferredCallTime: random.chance(0.3) ? random.one(['09:00:00', '10:30:00', '14:00:00', '16:15:00']) : null,
        marketingConsent: consent && consentAt < ANCHOR,
        marketingConsentAt: consent && consentAt < ANCHOR ? isoTime(consentAt) : null,
        active: random.chance(0.96),
        reportsToId: reportsTo,
        notes: random.chance(0.1) ? random.one(CONTACT_REMARKS) : null,
      });
      account.contacts.push(row.id);
    }
  }

  function makeProducts(): Product[] {
    const random = choices('Product');
    const rows = sheet('Product');
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
          const launched = ANCHOR - random.integer(800, 3_000) * DAY;
          const discontinued = random.chance(0.04);
          const row = add(
            rows,
            'Product',
            owners[0]![0],
            workingMoment(random, launched),
            ANCHOR - 300 * DAY + 9 * HOUR,
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
              discontinuedOn: discontinued ? isoDate(ANCHOR - random.integer(10, 200) * DAY) : null,
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

  function makePriceLists(): { EUR: string; USD: string } {
    const random = choices('PriceList');
    const lists = sheet('PriceList__c');
    const items = sheet('PriceListItem__c');
    const createdAt = workingMoment(random, ANCHOR - 740 * DAY);
    const owner = owners[0]![0];
    const ids = { EUR: '', USD: '' };
    let number = 0;
    for (const [currency, name, code, region] of [
      ['EUR', 'Europe', 'EU-2024', 'central'],
      ['USD', 'North America', 'NA-2024', 'americas'],
    ] as const) {
      const list = add(lists, 'PriceList__c', owner, createdAt, createdAt, {
        name,
        Code__c: code,
        CurrencyIsoCode__c: currency,
        Region__c: region,
        ValidFrom__c: isoDate(ANCHOR - 735 * DAY),
        ValidTo__c: null,
        Active__c: true,
        Description__c: `Prices in ${currency} before tax.`,
      });
      ids[currency] = list.id;
      for (const product of products)
        add(items, 'PriceListItem__c', owner, createdAt, createdAt, {
          name: numbered('PLI-', ++number, 6),
          PriceListId__c: list.id,
          ProductId__c: product.row.id,
          CurrencyIsoCode__c: currency,
          UnitPrice__c: money(product.list[currency]),
          MinimumQuantity__c: '1.000',
          ValidFrom__c: isoDate(ANCHOR - 735 * DAY),
          ValidTo__c: null,
        });
    }
    return ids;
  }

  /** Ids of won deals by account, for the orders that came of them. */
  function makeOpportunities(): Map<string, { id: string; closedAt: number }> {
    const random = choices('Opportunity');
    const rows = sheet('Opportunity__c');
    const won = new Map<string, { id: string; closedAt: number }>();
    const candidates = accounts.filter((a) => a.row['type'] === 'customer' || a.row['type'] === 'prospect');
    for (let i = 0; i < size.opportunities; i++) {
      const account = random.one(candidates);
      const prospect = account.row['type'] === 'prospect';
      const stage = random.weighted(prospect ? STAGES.slice(0, 4) : STAGES);
      const closed = stage === 'closedWon' || stage === 'closedLost';
      const earliest = Math.ceil((account.createdAt - ANCHOR) / DAY);
      const opened = closed ? random.integer(-700, -40) : random.integer(-150, -2);
      const createdAt = workingMoment(random, ANCHOR + Math.max(opened, earliest) * DAY);
      const closeAt = closed
        ? Math.min(createdAt + random.integer(10, 120) * DAY, ANCHOR - DAY)
        : ANCHOR + random.integer(7, 150) * DAY;
      const row = add(
        rows,
        'Opportunity__c',
        account.owner,
        createdAt,
        closed ? closeAt : ANCHOR - random.integer(1, 20) * DAY,
        {
          name: `${account.row['name']} – ${random.one(PROJECTS)}`,
          AccountId__c: account.row.id,
          ContactId__c: account.contacts.length ? random.one(account.contacts) : null,
          Stage__c: stage,
          LossReason__c:
            stage === 'closedLost' ? random.one(['price', 'competitor', 'timing', 'budget', 'noDecision']) : null,
          CurrencyIsoCode__c: account.currency,
          Amount__c: money(random.integer(8, 900) * 250_00),
          Probability__c: decimal(PROBABILITY[stage] * 100, 100, 2),
          CloseDate__c: isoDate(closeAt),
          ForecastCategory__c: closed
            ? stage === 'closedWon'
              ? 'closed'
              : 'omitted'
            : stage === 'negotiation'
              ? 'commit'
              : stage === 'proposal'
                ? 'bestCase'
                : 'pipeline',
          LeadSource__c: prospect
            ? random.one(['referral', 'website', 'tradeFair', 'coldCall', 'partner'])
            : random.one(['existingCustomer', 'existingCustomer', 'referral', 'website', 'tradeFair']),
          Competitor__c: random.chance(0.35) ? random.one(COMPETITORS) : null,
          NextStep__c: closed ? null : random.one(NEXT_STEPS),
          LastContactAt__c: isoTime(closed ? closeAt : later(random, createdAt)),
          Description__c: random.chance(0.3) ? random.one(OPPORTUNITY_REMARKS) : null,
        },
      );
      if (stage === 'closedWon') won.set(account.row.id, { id: row.id, closedAt: closeAt });
    }
    return won;
  }

  function makeOrders(): Order[] {
    const random = choices('SalesOrder');
    const rows = sheet('SalesOrder__c');
    const lineRows = sheet('SalesOrderLine__c');
    const customers = accounts.filter((a) => a.row['type'] === 'customer');
    const sellable = products.filter((p) => p.row['active'] === true);
    // Two years, a little more each month than the month before; oldest first, so that numbers follow time.
    const days = Array.from({ length: size.orders }, () => Math.floor(-730 * (1 - random.fraction() ** 0.8)) - 1);
    days.sort((a, b) => a - b);
    const moments = days.map((day) => workingMoment(random, ANCHOR + day * DAY)).sort((a, b) => a - b);
    const made: Order[] = [];
    let lineNumber = 0;
    for (const [i, orderedAt] of moments.entries()) {
      // A few customers order often, most of them now and then.
      const account = customers[Math.floor(customers.length * random.fraction() ** 1.8)]!;
      const { currency } = account;
      const age = Math.floor((ANCHOR - orderedAt) / DAY);
      const status = statusOf(random, age);
      const shipped = status === 'fulfilled' || status === 'closed';
      const shippedAt = shipped
        ? Math.min(workingMoment(random, orderedAt + random.integer(3, 21) * DAY), ANCHOR - random.integer(1, 9) * HOUR)
        : null;
      const taxRate = account.country.code === 'DE' ? VAT_RATE : 0;
      const projectLine = random.chance(0.15);
      const lines: OrderLine[] = [];
      const count = 2 + Math.floor(7 * random.fraction() ** 1.15);
      const chosen = new Set<Product>();
      while (chosen.size < Math.min(count, sellable.length)) chosen.add(random.one(sellable));
      const orderCounter = (counters.get('SalesOrder__c') ?? 0) + 1;
      const orderId = sampleId(size.set, 'SalesOrder__c', orderCounter, orderedAt);
      const updatedAt = shippedAt ?? orderedAt + Math.min(age, 2) * DAY;
      let cost = 0;
      const pending: [Product, number, number, number][] = [];
      for (const product of chosen) {
        const [low, high] = product.line.quantity;
        const halves = product.line.unitOfMeasure === 'hour' || product.line.unitOfMeasure === 'day';
        const whole = random.integer(low, projectLine ? high : Math.max(low, Math.ceil(high / 3)));
        const quantity = whole * 1_000 + (halves && random.chance(0.3) ? 500 : 0);
        const discount = account.discount + (whole >= high * 0.6 ? 300 : 0);
        const unitPrice = Math.round((product.list[currency] * (10_000 - discount)) / 10_000);
        pending.push([product, quantity, discount, unitPrice]);
      }
      for (const [k, [product, quantity, discount, unitPrice]] of pending.entries()) {
        const net = Math.round((unitPrice * quantity) / 1_000);
        const tax = Math.round((net * taxRate) / 100);
        cost += Math.round((product.cost[currency] * quantity) / 1_000);
        const row = add(lineRows, 'SalesOrderLine__c', account.owner, orderedAt, orderedAt, {
          name: numbered('SOL-', ++lineNumber, 6),
          SalesOrderId__c: orderId,
          Position__c: (k + 1) * 10,
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
        lines.push({ id: row.id, product, position: (k + 1) * 10, quantity, unitPrice, net, taxRate, tax });
      }
      const net = sum(lines.map((l) => l.net));
      const tax = sum(lines.map((l) => l.tax));
      const deal = won.get(account.row.id);
      const fromDeal = deal !== undefined && deal.closedAt <= orderedAt && deal.closedAt > orderedAt - 60 * DAY;
      const reference = random.chance(0.7) ? customerReference(random, orderedAt) : null;
      add(rows, 'SalesOrder__c', account.owner, orderedAt, updatedAt, {
        name: numbered('SO-', i + 1, 5),
        AccountId__c: account.row.id,
        ContactId__c: account.contacts.length ? random.one(account.contacts) : null,
        OpportunityId__c: fromDeal ? deal.id : null,
        PriceListId__c: priceLists[currency],
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
        CurrencyIsoCode__c: currency,
        MarginPercent__c: decimal(Math.round(((net - cost) * 10_000) / net), 100, 2),
        Notes__c: random.chance(0.12) ? random.one(ORDER_REMARKS) : null,
      });
      made.push({ id: orderId, account, status, reference, orderedAt, shippedAt, lines, net, tax });
    }
    return made;
  }

  function makeInvoices(): void {
    const random = choices('Invoice');
    const rows = sheet('Invoice__c');
    const lineRows = sheet('InvoiceLine__c');
    const payments = sheet('Payment__c');
    const creditNotes = sheet('CreditNote__c');
    const shipped = orders
      .filter((o) => o.shippedAt !== null)
      .map((order) => ({ order, issuedAt: Math.min(order.shippedAt! + random.integer(0, 3) * DAY, ANCHOR - HOUR) }))
      .sort((a, b) => a.issuedAt - b.issuedAt || (a.order.id < b.order.id ? -1 : 1));
    const booked: { at: number; owner: string; values: Record<string, unknown> }[] = [];
    let lineNumber = 0;
    for (const [i, { order, issuedAt }] of shipped.entries()) {
      const { account } = order;
      const total = order.net + order.tax;
      const dueAt = issuedAt + TERM_DAYS[account.terms]! * DAY;
      // The newest ones are still being written.
      const draft = issuedAt > ANCHOR - 4 * DAY && order.status === 'fulfilled' && random.chance(0.5);
      const canceled = !draft && random.chance(0.008);
      const paid: { at: number; cents: number }[] = [];
      if (!draft && !canceled) {
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
        for (let p = paid.length - 1; p >= 0; p--) if (paid[p]!.at >= ANCHOR) paid.splice(p, 1);
      }
      const paidCents = sum(paid.map((p) => p.cents));
      const open = total - paidCents;
      const daysLate = ANCHOR / DAY - Math.floor(dueAt / DAY);
      const status = draft
        ? 'draft'
        : canceled
          ? 'canceled'
          : open === 0
            ? 'paid'
            : daysLate > 0
              ? daysLate > 60 && random.chance(0.4)
                ? 'disputed'
                : 'overdue'
              : 'sent';
      const sentAt = draft ? null : issuedAt + HOUR;
      const counter = (counters.get('Invoice__c') ?? 0) + 1;
      const invoiceId = sampleId(size.set, 'Invoice__c', counter, issuedAt);
      add(rows, 'Invoice__c', account.owner, issuedAt, paid.at(-1)?.at ?? sentAt ?? issuedAt, {
        name: numbered('INV-', i + 1, 5),
        AccountId__c: account.row.id,
        SalesOrderId__c: order.id,
        Status__c: status,
        IssueDate__c: isoDate(issuedAt),
        DueDate__c: isoDate(dueAt),
        SentAt__c: sentAt === null ? null : isoTime(sentAt),
        PaidOn__c: status === 'paid' ? isoDate(paid.at(-1)!.at) : null,
        PaymentTerms__c: account.terms,
        CustomerReference__c: order.reference,
        CurrencyIsoCode__c: account.currency,
        Amount__c: money(order.net),
        SentAmount__c: draft ? null : money(total),
        DunningLevel__c: status === 'overdue' || status === 'disputed' ? Math.min(3, Math.floor(daysLate / 14)) : 0,
        BillingEmail__c: account.row['invoiceEmail'] ?? account.row['email'],
        BillingAddress__c: account.address,
        LedgerNumber__c: draft ? null : `${new Date(issuedAt).getUTCFullYear()}-${String(i + 1).padStart(6, '0')}`,
        Region__c: account.country.region,
        Notes__c:
          status === 'disputed' ? 'Customer complains about damaged goods; credit note under discussion.' : null,
      });
      for (const line of order.lines)
        add(lineRows, 'InvoiceLine__c', account.owner, issuedAt, issuedAt, {
          name: numbered('INL-', ++lineNumber, 6),
          InvoiceId__c: invoiceId,
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
      if (canceled) {
        const creditedAt = Math.min(issuedAt + 5 * DAY, ANCHOR - HOUR);
        add(creditNotes, 'CreditNote__c', account.owner, creditedAt, creditedAt, {
          name: numbered('CN-', creditNotes.length + 1, 5),
          InvoiceId__c: invoiceId,
          Reason__c: 'canceled',
          IssueDate__c: isoDate(creditedAt),
          CurrencyIsoCode__c: account.currency,
          Amount__c: money(total),
          TaxAmount__c: money(order.tax),
        });
      }
      for (const { at, cents } of paid)
        booked.push({
          at,
          owner: account.owner,
          values: {
            InvoiceId__c: invoiceId,
            AccountId__c: account.row.id,
            Status__c: at > ANCHOR - 3 * DAY ? 'received' : 'cleared',
            Method__c: random.weighted(account.currency === 'USD' ? METHODS_USD : METHODS_EUR),
            ReceivedOn__c: isoDate(at),
            CurrencyIsoCode__c: account.currency,
            Amount__c: money(cents),
            BankReference__c: `BNK${digits(random, 10)}`,
            Notes__c: cents < total ? 'Part payment.' : null,
          },
        });
    }
    booked.sort((a, b) => a.at - b.at);
    for (const [i, { at, owner, values }] of booked.entries())
      add(payments, 'Payment__c', owner, at, at, { name: numbered('PAY-', i + 1, 5), ...values });
  }
}

function toTable(objectApiName: SampleObject, rows: readonly Row[]): SampleTable {
  const columns = Object.keys(rows[0] ?? { id: '' });
  return { objectApiName, columns, rows: rows.map((row) => columns.map((column) => row[column])) };
}

const COMPANY_DOMAIN = 'northwind-office.example';

/** Hundredths of a percent. */
const DISCOUNTS = [
  [0, 40],
  [300, 20],
  [500, 20],
  [800, 10],
  [1_000, 7],
  [1_250, 3],
] as const;

const TERM_DAYS: Readonly<Record<string, number>> = {
  immediate: 0,
  net14: 14,
  net30: 30,
  net45: 45,
  net60: 60,
  prepaid: 0,
};

const STAGES = [
  ['qualification', 16],
  ['needsAnalysis', 14],
  ['proposal', 16],
  ['negotiation', 9],
  ['closedWon', 28],
  ['closedLost', 17],
] as const;

const PROBABILITY = {
  qualification: 10,
  needsAnalysis: 25,
  proposal: 50,
  negotiation: 75,
  closedWon: 100,
  closedLost: 0,
} as const;

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

type Position = readonly [department: string, titles: readonly string[], roles: readonly string[]];

const POSITIONS: readonly (readonly [Position, number])[] = [
  [['management', ['Managing director', 'Chief executive officer', 'Owner'], ['decisionMaker']], 18],
  [['purchasing', ['Head of purchasing', 'Buyer', 'Procurement specialist'], ['decisionMaker']], 26],
  [['finance', ['Chief financial officer', 'Accountant', 'Accounts payable clerk'], ['billing']], 18],
  [['facility', ['Facility manager', 'Office manager'], ['delivery', 'technical']], 20],
  [['it', ['IT manager', 'System administrator'], ['technical']], 8],
  [['operations', ['Operations manager', 'Warehouse manager'], ['delivery']], 10],
];

const PROJECTS = [
  'new headquarters',
  'office refit third floor',
  'meeting rooms',
  'sit-stand desks',
  'framework contract supplies',
  'LED lighting',
  'branch opening',
  'home office programme',
  'reception area',
  'training centre',
];
const COMPETITORS = ['Bürowelt Nord', 'Officeline Europe', 'Deskworks Inc.', 'Mobilia Contract', 'Local dealer'];
const NEXT_STEPS = [
  'Send revised quote',
  'Visit with interior designer',
  'Call the head of purchasing',
  'Deliver sample chair',
  'Wait for board decision',
  'Agree on payment terms',
];
const ACCOUNT_REMARKS = [
  'Wants one invoice a month.',
  'Delivery through the rear gate only, before 10:00.',
  'Framework contract, prices fixed until the end of the year.',
  'Won at the trade fair in Cologne.',
  'Purchasing is done by the parent company.',
];
const CONTACT_REMARKS = ['Prefers email.', 'Back from parental leave in January.', 'Speaks English and French.'];
const ORDER_REMARKS = [
  'Deliver together with the next order if possible.',
  'Customer collects.',
  'Call half an hour before arrival.',
  'Assembly on the day of delivery.',
];
const OPPORTUNITY_REMARKS = [
  'Budget confirmed for this fiscal year.',
  'Tender with three bidders.',
  'Landlord pays part of the lighting.',
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

function segmentsOf(random: Choices, large: boolean, type: string): string[] | null {
  const segments = [
    ...(large ? ['keyAccount'] : []),
    ...(type === 'prospect' ? ['newBusiness'] : []),
    ...(random.chance(0.2) ? ['onlineShop'] : []),
    ...(random.chance(0.08) ? ['publicTender'] : []),
    ...(type === 'partner' ? ['wholesale'] : []),
  ];
  return segments.length ? segments : null;
}

function companyName(
  random: Choices,
  culture: Culture,
  town: Town,
  trade: string,
  legalForm: string,
  taken: Set<string>,
): string {
  for (let attempt = 0; ; attempt++) {
    const family = random.one(culture.families);
    const stem = random.weighted([
      [`${family} ${trade}`, 5],
      [`${trade} ${family}`, 2],
      [`${town.city} ${trade}`, attempt === 0 ? 1 : 0],
      [`${family} & ${random.one(culture.families)} ${trade}`, 2],
    ]);
    const name = `${stem} ${legalForm}`;
    if (taken.has(name)) continue;
    taken.add(name);
    return name;
  }
}

function streetLine(random: Choices, culture: Culture): string {
  const street = random.one(culture.streets).replaceAll('-', ' ');
  const number = random.integer(1, 148);
  return culture.numberFirst ? `${number} ${street}` : `${street} ${number}`;
}

/** Area code and 555, a number that nobody has. */
const phoneOf = (random: Choices, town: Town): string => `${town.dial} 555${digits(random, 4)}`;

function digits(random: Choices, count: number): string {
  let text = '';
  for (let i = 0; i < count; i++) text += random.integer(i === 0 ? 1 : 0, 9);
  return text;
}

function customerReference(random: Choices, at: number): string {
  const year = new Date(at).getUTCFullYear();
  return random.one([`PO-${digits(random, 6)}`, `${year}/${digits(random, 4)}`, `45${digits(random, 8)}`]);
}

/** GTIN-13 of a 12-digit number: the check digit is appended. */
function gtin(number: number): string {
  const text = String(number).padStart(12, '0');
  let total = 0;
  for (let i = 0; i < 12; i++) total += Number(text[i]) * (i % 2 === 0 ? 1 : 3);
  return text + ((10 - (total % 10)) % 10);
}

const slug = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll('ø', 'o')
    .replaceAll('ł', 'l')
    .replaceAll('æ', 'ae')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');

/** A moment between 7 and 17 o'clock UTC on that day, or on the Monday after a weekend. */
function workingMoment(random: Choices, at: number): number {
  const day = Math.floor(at / DAY);
  const weekday = (day + 4) % 7;
  const shift = weekday === 6 ? 2 : weekday === 0 ? 1 : 0;
  return (day + shift) * DAY + random.integer(7 * HOUR, 17 * HOUR);
}

/** A working moment between a day after `from` and the anchor; `from` when there is none. */
function later(random: Choices, from: number): number {
  const days = Math.floor((ANCHOR - from) / DAY) - 3;
  return days < 1 ? from : workingMoment(random, from + random.integer(1, days) * DAY);
}

/** Prices end in .90, those below ten in .x9. */
function roundPrice(cents: number): number {
  if (cents < 1_000) return Math.max(9, Math.round(cents / 10) * 10 - 1);
  return Math.max(90, Math.round(cents / 100) * 100 - 10);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);
const round = (value: number, places: number): number => Math.round(value * 10 ** places) / 10 ** places;
const isoDate = (at: number): string => new Date(at).toISOString().slice(0, 10);
const isoTime = (at: number): string => new Date(at).toISOString();
const numbered = (prefix: string, number: number, width: number): string =>
  prefix + String(number).padStart(width, '0');
const money = (cents: number): string => decimal(cents, 100, 2);

/** `units` of which `per` make one, as decimal text with `scale` places, such as decimal(-1205, 100, 2) = "-12.05". */
function decimal(units: number, per: number, scale: number): string {
  const whole = Math.floor(Math.abs(units) / per);
  const rest = String(Math.abs(units) % per).padStart(scale, '0');
  return `${units < 0 ? '-' : ''}${whole}.${rest}`;
}
