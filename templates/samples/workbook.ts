/** The sheets of one tenant's sample records, with ids, owners and times of every row. */
import { type SampleObject, sampleId } from './ids.ts';
import { Choices } from './random.ts';

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

export type Row = Record<string, unknown> & { id: string };

export class Workbook {
  readonly size: SampleSize;
  readonly owners: Owners;
  /** The day on which the company stands still, in milliseconds since 1970: the end of all that has happened. */
  readonly end: number;
  readonly #tables = new Map<SampleObject, Row[]>();

  constructor(size: SampleSize, owners: Owners, end: number) {
    this.size = size;
    this.owners = owners;
    this.end = end;
  }

  /** Starts the rows of an object; objects appear in the order in which they are started. */
  sheet(object: SampleObject): Row[] {
    const rows: Row[] = [];
    this.#tables.set(object, rows);
    return rows;
  }

  /** Choices that depend on nothing but the set and the name. */
  choices(name: string): Choices {
    return new Choices(`${this.size.set}/${name}`);
  }

  /** The user who owns what belongs to the whole company. */
  get companyOwner(): string {
    const [first] = this.owners;
    if (!first) throw new Error('Sample records need an owner.');
    return first[0];
  }

  /** The id that the next row of the sheet gets. */
  nextId(rows: readonly Row[], object: SampleObject, createdAt: number): string {
    return sampleId(this.size.set, object, rows.length + 1, createdAt);
  }

  add(
    rows: Row[],
    object: SampleObject,
    owner: string,
    createdAt: number,
    updatedAt: number,
    values: Record<string, unknown>,
  ): Row {
    const row = {
      id: this.nextId(rows, object, createdAt),
      ownerId: owner,
      createdAt: new Date(createdAt).toISOString(),
      createdById: owner,
      updatedAt: new Date(Math.max(createdAt, updatedAt)).toISOString(),
      updatedById: owner,
      ...values,
    };
    rows.push(row);
    return row;
  }

  /** The objects that have rows. */
  tables(): SampleTable[] {
    return [...this.#tables].filter(([, rows]) => rows.length > 0).map(([name, rows]) => toTable(name, rows));
  }
}

function toTable(objectApiName: SampleObject, rows: readonly Row[]): SampleTable {
  const columns = Object.keys(rows[0] ?? { id: '' });
  return { objectApiName, columns, rows: rows.map((row) => columns.map((column) => row[column])) };
}
