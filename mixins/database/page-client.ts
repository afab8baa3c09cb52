/**
 * A `pg` client with queries of our own: one that hands its rows to a RowWriter as they come from the wire, and one that
 * knows the columns of a prepared statement from its first run, so that they are neither asked for nor read again.
 * Connection, parser and protocol are pg's.
 */
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import utils from 'pg/lib/utils.js';
import type { ParameterStatusMessage } from 'pg-protocol/dist/messages.js';
import { type Message, Parser } from 'pg-protocol/dist/parser.js';
import { serialize } from 'pg-protocol/dist/serializer.js';
import { RowShape, type RowSink, RowWriter, rowTexts } from '../../lib/json/row-writer.ts';
import { LIMITS } from '../../lib/limits.ts';
import { chainExpiresAt } from '../certificate-expiry.ts';
import type { Statement } from './statement.ts';

/** How the columns of a page statement are to be read: first those of the record, then values for us. */
export interface PageStatement extends Statement {
  /** Columns of the record. */
  readonly shown: number;
  /** Index of a column that is never null in a record; null there means that the one row stands for no record. */
  readonly marker: number;
  /** Records written at most, fewer when they are large; what comes beyond tells that another page follows. */
  readonly take: number;
}

export interface PageRows<Sink extends RowSink = RowWriter> {
  /** Holds the records. */
  readonly writer: Sink;
  /** Records written: all that came, `take`, or as many as fill the writer. */
  readonly count: number;
  /** Records follow that were not written. */
  readonly more: boolean;
  /**
   * Texts of the columns behind the shown ones: of the last record written when the page is full, else of the first row.
   */
  readonly rest: readonly (string | null)[];
}

const ROW = 68;
const DESCRIPTION = 84;
const ROW_READ: Message & { fields: readonly never[] } = { name: 'dataRow', length: 0, fields: [] };
const SHAPE_KNOWN: Message & { fields: readonly never[] } = { name: 'rowDescription', length: 0, fields: [] };

/** Members of pg that its types leave out. */
declare module 'pg' {
  interface Connection {
    /** Texts of prepared statements, by name. */
    readonly parsedStatements: Record<string, string>;
    attachListeners(stream: NodeJS.ReadableStream): void;
  }

  interface Client {
    /** Of the server's process; null before the connection is made. */
    readonly processID: number | null;
    _getActiveQuery(): unknown;
  }

  interface Pool {
    /** All connections, also those that are being made. */
    readonly _clients: readonly pg.PoolClient[];
  }

  interface Query<R, I> {
    values: readonly unknown[] | undefined;
    name: string | undefined;
    /** Reported when the statement has ended. */
    _canceledDueToError: unknown;
    handleRowDescription(message: unknown): void;
    handleDataRow(message: Message): void;
    handleCommandComplete(message: { text: string }): void;
    prepare(connection: Connection): void;
  }
}

const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute(), serialize.sync()]);

class PageParser extends Parser {
  readonly #active: () => unknown;

  constructor(active: () => unknown) {
    super();
    this.#active = active;
  }

  override handlePacket(offset: number, code: number, length: number, bytes: Buffer): Message {
    if (code === ROW || code === DESCRIPTION) {
      const query = this.#active();
      if (code === ROW && query instanceof PageQuery) {
        query.read(bytes, offset, length);
        return ROW_READ;
      }
      if (code === DESCRIPTION && query instanceof KnownQuery && query.shape) return SHAPE_KNOWN;
    }
    return super.handlePacket(offset, code, length, bytes);
  }
}

const READ_ONLY_SETTINGS: ReadonlySet<string> = new Set(['in_hot_standby', 'default_transaction_read_only']);

export class PageClient extends pg.Client {
  /** Columns of prepared statements, by their names; a statement that is prepared anew is described anew. */
  readonly columns = new Map<string, Columns>();
  /** Likewise of page statements. */
  readonly shapes = new Map<string, RowShape>();
  /** Settings that are on and keep the session from changing anything; the server reports each change of them. */
  readonly #readOnlyBy = new Set<string>();
  /** Why the connection has ended. */
  lost?: Error;
  /** As the server reports it when it accepts the connection, such as `18.1`; null before. */
  serverVersion: string | null = null;

  /** Of the server, milliseconds since 1970; null: the connection has no TLS, or accepts any certificate. */
  get certificateExpiresAt(): number | null {
    const { stream } = this.connection;
    return stream instanceof TLSSocket && stream.authorized ? chainExpiresAt(stream.getPeerCertificate(true)) : null;
  }

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // From its creation to its end: the pool has no listener while it verifies a connection and hands it over, and an
    // `error` event without one ends the process. Statements on a lost connection fail by themselves.
    this.on('error', (error) => {
      this.lost ??= error;
    });
    const { connection } = this;
    connection.attachListeners = (stream) => {
      const parser = new PageParser(() => this._getActiveQuery());
      const tell = (message: Message): void =>
        void connection.emit(message.name === 'error' ? 'errorMessage' : message.name, message);
      stream.on('data', (chunk: Buffer) => parser.parse(chunk, tell));
    };
    connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatusMessage) => {
      if (parameterName === 'server_version') this.serverVersion = firstWord(parameterValue);
      if (!READ_ONLY_SETTINGS.has(parameterName)) return;
      if (parameterValue === 'on') this.#readOnlyBy.add(parameterName);
      else this.#readOnlyBy.delete(parameterName);
    });
  }

  /** The server is a standby, or set read-only by its operator. */
  get isReadOnly(): boolean {
    return this.#readOnlyBy.size > 0;
  }
}

/** Called when a statement has ended; without an error when it succeeded. */
type Ended = (error: Error | null | undefined) => void;

/** A query that may know the columns of its result. */
abstract class KnownQuery<Shape = unknown> extends pg.Query {
  /** Of a statement that was prepared before on the connection. */
  shape: Shape | undefined;

  constructor({ text, values, name }: Statement, shape: Shape | undefined, callback: Ended) {
    // Handed over as text: pg copies the properties of an object one by one.
    super(text, undefined, callback);
    this.values = values;
    this.name = name;
    this.shape = shape;
  }

  /** One buffer instead of four, and no description in the answer, once the columns are known. */
  override prepare(connection: pg.Connection): void {
    const { name, values } = this;
    if (this.shape === undefined || name === undefined || connection.parsedStatements[name] === undefined) {
      super.prepare(connection);
      return;
    }
    let bound: Buffer;
    try {
      bound = serialize.bind({ statement: name, values, valueMapper: utils.prepareValue });
    } catch {
      super.prepare(connection); // it fails there too, and reports it as pg does
      return;
    }
    if (connection.stream.writable) connection.stream.write(Buffer.concat([bound, EXECUTE_AND_SYNC]));
  }
}

/** Parsers of values by the type of their column. */
interface Types {
  getTypeParser(oid: number, format: 'text'): (text: string) => unknown;
}

/** Columns of a result, in order. */
type Columns = readonly { readonly name: string; readonly parse: (text: string) => unknown }[];

/** The JSON of an answer that begins with `head`; the caller appends the end. */
export const jsonPage = (head: string): PageSink<RowWriter> => ({
  writerOf: (shape) => {
    const writer = new RowWriter(shape);
    writer.append(head);
    return writer;
  },
  maxBytes: LIMITS.page_max_bytes,
});

/** The result of a statement. */
export interface Answer<R> {
  readonly rows: R[];
  /** Rows that it returned or changed. */
  readonly rowCount: number;
  /** First word of its command tag, such as `SELECT` or `COMMIT`. */
  readonly command: string;
}

const firstWord = (text: string): string => text.split(' ', 1)[0] ?? '';

class StatementQuery<R> extends KnownQuery<Columns> {
  readonly answer: { rows: R[]; rowCount: number; command: string } = { rows: [], rowCount: 0, command: '' };
  readonly #types: Types;
  readonly #keep: (columns: Columns) => void;

  constructor(
    statement: Statement,
    columns: Columns | undefined,
    types: Types,
    keep: (columns: Columns) => void,
    callback: Ended,
  ) {
    super(statement, columns, callback);
    this.#types = types;
    this.#keep = keep;
  }

  override handleRowDescription({ fields }: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    if (this.shape) return;
    this.shape = fields.map(({ name, dataTypeID }) => ({ name, parse: this.#types.getTypeParser(dataTypeID, 'text') }));
    this.#keep(this.shape);
  }

  override handleDataRow({ fields }: Message & { fields: readonly (string | null)[] }): void {
    const columns = this.shape ?? [];
    const row: Record<string, unknown> = {};
    try {
      for (let i = 0; i < columns.length; i++) {
        const text = fields[i];
        const { name, parse } = columns[i]!;
        row[name] = text == null ? null : parse(text);
      }
    } catch (error) {
      this._canceledDueToError = error;
    }
    this.answer.rows.push(row as R);
  }

  override handleCommandComplete({ text }: { text: string }): void {
    const { answer } = this;
    if (!this.shape) this.#keep((this.shape = []));
    answer.command = firstWord(text);
    answer.rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0;
  }
}

/** Takes the rows of a page. */
export interface PageSink<Sink extends RowSink> {
  readonly writerOf: (shape: RowShape) => Sink;
  /** The page ends with the record with which the writer is this long. */
  readonly maxBytes: number;
}

class PageQuery<Sink extends RowSink = RowSink> extends KnownQuery<RowShape> {
  readonly #statement: PageStatement;
  readonly #sink: PageSink<Sink>;
  readonly #keep: (shape: RowShape) => void;
  readonly #stop: () => void;
  #writer: Sink | undefined;
  #count = 0;
  #full = false;
  #more = false;
  #left: number;
  #rest: (string | null)[] = [];

  constructor(
    statement: PageStatement,
    sink: PageSink<Sink>,
    shape: RowShape | undefined,
    keep: (shape: RowShape) => void,
    stop: () => void,
    callback: Ended,
  ) {
    super(statement, shape, callback);
    this.#stop = stop;
    this.#statement = statement;
    this.#sink = sink;
    this.#left = sink.maxBytes;
    this.#keep = keep;
  }

  override handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    if (this.shape) return;
    this.shape = new RowShape(
      message.fields.slice(0, this.#statement.shown).map(({ name, dataTypeID }) => ({ name, oid: dataTypeID })),
    );
    this.#keep(this.shape);
  }

  override handleDataRow(): void {} // read() has seen it

  /** A DataRow message of `length` bytes whose body starts at `offset`. */
  read(bytes: Buffer, offset: number, length: number): void {
    if (this.#full) {
      this.#more = true;
      this.#left -= length;
      if (this.#left < 0) this.#stop();
      return;
    }
    const { shown, marker, take } = this.#statement;
    const writer = this.#begin();
    if (this.#count === 0) {
      this.#rest = rowTexts(bytes, offset, shown);
      if (this.#rest[marker - shown] === null) return;
    }
    writer.row(bytes, offset);
    this.#count++;
    this.#full = this.#count === take || writer.length >= this.#sink.maxBytes;
    if (this.#full && this.#count > 1) this.#rest = rowTexts(bytes, offset, shown);
  }

  result(): PageRows<Sink> {
    return { writer: this.#begin(), count: this.#count, more: this.#more, rest: this.#rest };
  }

  #begin(): Sink {
    if (!this.#writer) {
      if (!this.shape) throw new Error('Assertion failed: rows came before their description');
      this.#writer = this.#sink.writerOf(this.shape);
    }
    return this.#writer;
  }
}

/** The first rows of a statement. */
export interface FirstRows<R> {
  readonly rows: R[];
  /** Others follow. */
  readonly more: boolean;
}

class BoundedQuery<R> extends StatementQuery<R> {
  readonly #stop: () => void;
  #left: number;
  more = false;

  constructor({ text, values }: Statement, types: Types, maxBytes: number, stop: () => void, callback: Ended) {
    super({ text, values }, undefined, types, () => {}, callback);
    this.#left = maxBytes;
    this.#stop = stop;
  }

  override handleDataRow(message: Message & { fields: readonly (string | null)[] }): void {
    if (this.more) return;
    if (this.#left <= 0) {
      this.more = true;
      this.#stop();
      return;
    }
    this.#left -= message.length;
    super.handleDataRow(message);
  }
}

/**
 * Runs a statement whose rows are read up to the one with which they reach `maxBytes`. The result is there when the
 * next one comes; `abandoned` tells that the connection is to be closed, and the statement with it.
 */
export function runBounded<R>(
  client: pg.PoolClient,
  statement: Statement,
  maxBytes: number,
  abandoned: () => void,
): Promise<FirstRows<R>> {
  return new Promise((resolve, reject) => {
    const query: BoundedQuery<R> = new BoundedQuery<R>(
      statement,
      client,
      maxBytes,
      () => {
        abandoned();
        resolve({ rows: query.answer.rows, more: true });
      },
      (error) => {
        if (error) reject(error);
        else resolve({ rows: query.answer.rows, more: false });
      },
    );
    client.query(query);
  });
}

/** Runs a statement and answers what `pick` takes of it; the columns of a prepared one are remembered by its name. */
export function runStatement<R, T>(
  client: PageClient,
  statement: Statement,
  pick: (answer: Answer<R>) => T,
): Promise<T> {
  const { columns: known } = client;
  const { name } = statement;
  return new Promise((resolve, reject) => {
    const query: StatementQuery<R> = new StatementQuery<R>(
      statement,
      name === undefined ? undefined : known.get(name),
      client,
      (columns) => {
        if (name !== undefined) known.set(name, columns);
      },
      (error) => {
        if (error) {
          if (name !== undefined) known.delete(name); // the statement may be prepared anew, with other columns
          reject(error);
        } else {
          try {
            resolve(pick(query.answer));
          } catch (problem) {
            reject(problem);
          }
        }
      },
    );
    client.query(query);
  });
}

/**
 * Runs a statement of a page. The last record's `rest` is kept only when the page is full; it is not needed otherwise.
 * Rows after a full page are dropped as they arrive; when that would be as much as a whole page, the result is
 * there before the statement has ended, and `abandoned` tells that the connection is to be closed.
 */
export function runPage<Sink extends RowSink>(
  client: PageClient,
  statement: PageStatement,
  sink: PageSink<Sink>,
  abandoned: () => void,
): Promise<PageRows<Sink>> {
  const { shapes } = client;
  const { name } = statement;
  return new Promise((resolve, reject) => {
    const query: PageQuery<Sink> = new PageQuery<Sink>(
      statement,
      sink,
      name === undefined ? undefined : shapes.get(name),
      (shape) => {
        if (name !== undefined) shapes.set(name, shape);
      },
      () => {
        abandoned();
        resolve(query.result());
      },
      (error) => {
        if (error) {
          if (name !== undefined) shapes.delete(name); // the statement may be prepared anew, with other columns
          reject(error);
        } else resolve(query.result());
      },
    );
    client.query(query);
  });
}
