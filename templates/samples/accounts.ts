/** Sample accounts and their contacts. */
import { COUNTRIES, type Country, CULTURES, type Culture, type Town } from './people-and-places.ts';
import type { Choices } from './random.ts';
import { DAY, decimal, digits, isoDate, isoTime, later, money, round, slug, workingMoment } from './values.ts';
import type { Row, Workbook } from './workbook.ts';

interface Address {
  street: string;
  city: string;
  state: string | null;
  postalCode: string;
  country: string;
}

export interface Account {
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

/** Companies, each with its owner, town and terms. */
export function makeAccounts(book: Workbook): Account[] {
  const random = book.choices('Account');
  const rows = book.sheet('Account');
  const countries = COUNTRIES.filter((c) => book.size.countries?.includes(c.code) ?? true).map(
    (c) => [c, c.share] as const,
  );
  const names = new Set<string>();
  const made: Account[] = [];
  for (let i = 0; i < book.size.accounts; i++) {
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
    const createdAt = workingMoment(random, book.end - age * DAY);
    const owner = random.weighted(book.owners);
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
    const row = book.add(rows, 'Account', owner, createdAt, later(random, createdAt, book.end), {
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
      lastVisitAt: random.chance(0.6) ? isoTime(later(random, createdAt, book.end)) : null,
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

/** People at the accounts; their ids are noted with the account. */
export function makeContacts(book: Workbook, accounts: readonly Account[]): void {
  const random = book.choices('Contact');
  const rows = book.sheet('Contact');
  for (let i = 0; i < book.size.contacts; i++) {
    const account = accounts[i] ?? random.one(accounts);
    const culture: Culture = CULTURES[account.country.culture];
    const woman = random.chance(0.5);
    const firstName = random.one(woman ? culture.women : culture.men);
    const lastName = random.one(culture.families);
    const [department, titles, roles] = random.weighted(POSITIONS);
    const createdAt = workingMoment(
      random,
      Math.min(account.createdAt + random.integer(1, 200) * DAY, book.end - 4 * DAY),
    );
    const consent = random.chance(0.45);
    const consentAt = workingMoment(random, createdAt + random.integer(1, 90) * DAY);
    const reportsTo = account.contacts.length > 0 && random.chance(0.6) ? (account.contacts[0] ?? null) : null;
    const row = book.add(rows, 'Contact', account.owner, createdAt, later(random, createdAt, book.end), {
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
      marketingConsent: consent && consentAt < book.end,
      marketingConsentAt: consent && consentAt < book.end ? isoTime(consentAt) : null,
      active: random.chance(0.96),
      reportsToId: reportsTo,
      notes: random.chance(0.1) ? random.one(CONTACT_REMARKS) : null,
    });
    account.contacts.push(row.id);
  }
}

/** Hundredths of a percent. */
const DISCOUNTS = [
  [0, 40],
  [300, 20],
  [500, 20],
  [800, 10],
  [1_000, 7],
  [1_250, 3],
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

const ACCOUNT_REMARKS = [
  'Wants one invoice a month.',
  'Delivery through the rear gate only, before 10:00.',
  'Framework contract, prices fixed until the end of the year.',
  'Won at the trade fair in Cologne.',
  'Purchasing is done by the parent company.',
];

const CONTACT_REMARKS = ['Prefers email.', 'Back from parental leave in January.', 'Speaks English and French.'];

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

/** Area code and 555, an unassigned number. */
const phoneOf = (random: Choices, town: Town): string => `${town.dial} 555${digits(random, 4)}`;
