/** Types of the public API that several pages read. */

export interface Identity {
  tenant: { name: string; defaultCurrency: string };
  user: { id: string; displayName: string; locale: string; timezone: string };
}

/** Language and time zone in which values are written. */
export interface Place {
  locale: string;
  timezone: string;
}

/** The signed-in user. */
export interface Person extends Place {
  userId: string;
  /** Of amounts without a currency of their own. */
  currency: string;
}

export type Granularity = 'day' | 'week' | 'month' | 'quarter' | 'year';

export interface Column {
  key: string;
  label: string;
  role: 'dimension' | 'measure';
  fieldType: string;
  currency: string | null;
  /** Of amounts of several currencies: key of the column with the currency of each. */
  currencyKey?: string;
}

/** View of an address. */
export interface View {
  title: string;
  /** What it shows; absent: it has drawn itself. */
  parts?: readonly Node[];
  /** Until everything is there. */
  ran?: Promise<unknown>;
  close?(): void;
}
