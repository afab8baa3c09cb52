/** Ids of sample records: UUIDv7 (RFC 9562) whose random part is a counter, so that every run makes the same ones. */

/** Order decides the id, so only ever append. */
const OBJECTS = [
  'Account',
  'Contact',
  'Product',
  'PriceList__c',
  'PriceListItem__c',
  'Opportunity__c',
  'SalesOrder__c',
  'SalesOrderLine__c',
  'Invoice__c',
  'InvoiceLine__c',
  'Payment__c',
  'CreditNote__c',
] as const;

export type SampleObject = (typeof OBJECTS)[number];

/**
 * @param tenant number of the sample set, 0 to 15; ids of different sets differ
 * @param createdAt milliseconds since 1970, as in the record's `createdAt`, so that ids sort by age
 */
export function sampleId(tenant: number, object: SampleObject, counter: number, createdAt: number): string {
  const time = createdAt.toString(16).padStart(12, '0');
  const kind = tenant.toString(16) + OBJECTS.indexOf(object).toString(16).padStart(2, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${kind}-8000-${counter.toString(16).padStart(12, '0')}`;
}
