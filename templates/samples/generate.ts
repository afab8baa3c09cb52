/**
 * Sample records of the ERP template: a seller of office furniture in Germany with customers in Europe and North
 * America, and two years of its orders, invoices and payments up to a given week. Pure and repeatable: the same
 * arguments give the same records, byte by byte. Amounts are computed in cents and every total adds up.
 */
import { makeAccounts, makeContacts } from './accounts.ts';
import { makeInvoices } from './invoices.ts';
import { makeOpportunities } from './opportunities.ts';
import { makeOrders } from './orders.ts';
import { makePriceLists, makeProducts } from './price-lists.ts';
import { lastSunday } from './values.ts';
import { type Owners, type SampleSize, type SampleTable, Workbook } from './workbook.ts';

/** All sample tables of one tenant, made at that moment (milliseconds since 1970). */
export function generateSamples(size: SampleSize, owners: Owners, at: number): SampleTable[] {
  const book = new Workbook(size, owners, lastSunday(at));
  const accounts = makeAccounts(book);
  makeContacts(book, accounts);
  const products = makeProducts(book);
  const priceLists = makePriceLists(book, products);
  const won = makeOpportunities(book, accounts);
  makeInvoices(book, makeOrders({ book, accounts, products, priceLists, won }));
  return book.tables();
}
