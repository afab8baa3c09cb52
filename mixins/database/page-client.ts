/**
 * A `pg` client that can hand the rows of a statement to a RowWriter as they come from the wire. Everything else is
 * pg's own: the parser is extended for this one kind of query, and leaves all other messages alone.
 */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import { LIMITS } from '../../config/limits.ts';
import { RowShape, RowWriter, rowTexts } from '../../lib/json/row-writer.ts';
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

export interface PageRows {
  /** Holds `head` and the records, separated by commas; the caller appends the end. */
  readonly writer: RowWriter;
  /** Records written: all that came, `take`, or as many as make a page of LIMITS.page_max_bytes. */
  readonly count: number;
  /** Records follow that were not written. */
  readonly more: boolean;
  /**
   * Texts of the columns behind the shown ones, of the last record written; of the only row when there is no record.
   */
  readonly rest: readonly (string | null)[];
}

interface Message {
  name: string;
  length: number;
}

const ROW = 68;
const DESCRIPTION = 84;
const ROW_READ: Message & { fields: readonly never[] } = { name: 'dataRow', length: 0, fields: [] };
const SHAPE_KNOWN: Message & { fields: readonly never[] } = { name: 'rowDescription', length: 0, fields: [] };

interface PgParser {
  handlePacket(offset: number, code: number, length: number, bytes: Buffer): Message;
  parse(buffer: Buffer, callback: (message: Message) => void): void;
}

const { Parser } = createRequire(import.meta.url)('pg-protocol/dist/parser.js') as { Parser: new () => PgParser };

class PageParser extends Parser {
  readonly #active: () => unknown;

  constructor(active: () => unknown) {
    super();
    this.#active = active;
  }

  override handlePacket(offset: number, code: number, length: number, bytes: Buffer): Message {
    if (code === ROW || code === DESCRIPTION) {
      const query = this.#active();
      if (query instanceof PageQuery) {
        if (code === ROW) {
          query.read(bytes, offset, length);
          return ROW_READ;
        }
        if (query.shape) return SHAPE_KNOWN;
      }
    }
    return super.handlePacket(offset, code, length, bytes);
  }
}

interface PgConnection {
  on(event: 'parameterStatus', listener: (message: { parameterName: string; parameterValue: string }) => void): void;
  attachListeners(stream: NodeJS.ReadableStream): void;
  emit(event: string, message: Message): void;
}

const READ_ONLY_SETTINGS: ReadonlySet<string> = new Set(['in_hot_standby', 'default_transaction_read_only']);

export class PageClient extends pg.Client {
  /** Shapes of prepared statements, by their names; a statement that is prepared anew is described anew. */
  readonly shapes = new Map<string, RowShape>();
  /** Settings that are on and keep the session from changing anything; the server reports each change of them. */
  readonly #readOnlyBy = new Set<string>();
  /** As the server reports it when it accepts the connection, such as `18.1`; null before. */
  serverVersion: string | null = null;

  /** Of the server, milliseconds since 1970; null: the connection has no TLS, or accepts any certificate. */
  get certificateExpiresAt(): number | null {
    const { stream } = (this as unknown as { connection: { stream: Socket } }).connection;
    return stream instanceof TLSSocket && stream.authorized ? chainExpiresAt(stream.getPeerCertificate(true)) : null;
  }

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // From its creation to its end: the pool has no listener while it verifies a connection and hands it over, and an
    // `error` event without one ends the process. Statements on a lost connection fail by themselves.
    this.on('error', () => {});
    const self = this as unknown as { connection: PgConnection; _getActiveQuery(): unknown };
    const { connection } = self;
    connection.attachListeners = (stream) => {
      const parser = new PageParser(() => self._getActiveQuery());
      const tell = (message: Message): void =>
        connection.emit(message.name === 'error' ? 'errorMessage' : message.name, message);
      stream.on('data', (chunk: Buffer) => parser.parse(chunk, tell));
    };
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'server_version') this.serverVersion = parameterValue.split(' ', 1)[0]!;
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

const PgQuery = pg.Query as unknown as new (
  config: object,
  callback?: (error: Error | null) => void,
) => {
  handleRowDescription(message: unknown): void;
  handleDataRow(message: Message): void;
};

class PageQuery extends PgQuery {
  shape: RowShape | undefined;
  readonly #statement: PageStatement;
  readonly #head: string;
  readonly #keep: (shape: RowShape) => void;
  readonly #stop: () => void;
  #writer: RowWriter | undefined;
  #count = 0;
  #full = false;
  #more = false;
  #left = LIMITS.page_max_bytes;
  #rest: (string | null)[] = [];

  constructor(
    statement: PageStatement,
    head: string,
    shape: RowShape | undefined,
    keep: (shape: RowShape) => void,
    stop: () => void,
    callback: (error: Error | null) => void,
  ) {
    super({ text: statement.text, values: statement.values, name: statement.name }, callback);
    this.#stop = stop;
    this.#statement = statement;
    this.#head = head;
    this.shape = shape;
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
    this.#full = this.#count === take || writer.length >= LIMITS.page_max_bytes;
    if (this.#full && this.#count > 1) this.#rest = rowTexts(bytes, offset, shown);
  }

  result(): PageRows {
    return { writer: this.#begin(), count: this.#count, more: this.#more, rest: this.#rest };
  }

  #begin(): RowWriter {
    if (!this.#writer) {
      this.#writer = new RowWriter(this.shape!);
      this.#writer.append(this.#head);
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

class BoundedQuery extends PgQuery {
  readonly #stop: () => void;
  #left: number;
  more = false;

  constructor(
    statement: Statement,
    maxBytes: number,
    stop: () => void,
    callback: (error: Error | null, result?: pg.QueryResult) => void,
  ) {
    super({ text: statement.text, values: statement.values }, callback);
    this.#left = maxBytes;
    this.#stop = stop;
  }

  override handleDataRow(message: Message): void {
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
    const query: BoundedQuery & { _result?: { rows: R[] } } = new BoundedQuery(
      statement,
      maxBytes,
      () => {
        abandoned();
        resolve({ rows: query._result?.rows ?? [], more: true });
      },
      (error, result) => {
        if (error) reject(error);
        else resolve({ rows: (result?.rows ?? []) as R[], more: false });
      },
    );
    (client as unknown as { query(query: BoundedQuery): void }).query(query);
  });
}

/**
 * Runs a statement of a page. The last record's `rest` is kept only when the page is full; it is not needed otherwise.
 * Rows after a full page are dropped as they arrive; when that would be as much as a whole page, the result is
 * there before the statement has ended, and `abandoned` tells that the connection is to be closed.
 */
export function runPage(
  client: pg.PoolClient,
  statement: PageStatement,
  head: string,
  abandoned: () => void,
): Promise<PageRows> {
  const { shapes } = client as unknown as PageClient;
  const { name } = statement;
  return new Promise((resolve, reject) => {
    const query: PageQuery = new PageQuery(
      statement,
      head,
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
    (client as unknown as { query(query: PageQuery): void }).query(query);
  });
}
