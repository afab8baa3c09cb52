/** The records of one object, typed by what `erp types` has written. */
import { ConflictError, ErpError } from './errors.ts';
import type { Http } from './http.ts';
import { pages } from './pages.ts';

/** Bodies of an object, as `erp types` writes them under `Objects`. */
export interface Bodies {
  readonly read: object;
  readonly create: object;
  readonly update: object;
}

/** Without generated types: any object, with fields that may hold anything. */
export type Untyped = Record<string, { read: Values; create: Values; update: Values }>;

export type Values = Record<string, unknown>;

type Name<Read> = keyof Read & string;

/** A record that was read: the fields that were asked for, its id, and the version from which a change starts. */
export type Found<Read, Field extends keyof Read> = Pick<Read, Field | ('id' & keyof Read)> & Versioned & Expanded;

export interface Versioned {
  readonly id: string;
  /** ETag of the version that was read. */
  readonly _etag: string;
}

interface Expanded {
  /** Of `expand`, by reference; null: it is empty, or its record cannot be read. */
  readonly _expanded?: Readonly<Record<string, Readonly<Values> | null>>;
}

export interface Reading<Read, Field extends Name<Read>> {
  /** Only these fields. Without it all that can be read. */
  readonly fields?: readonly Field[];
  /** Fields of the records that these references point to. */
  readonly expand?: { readonly [Reference in Name<Read>]?: readonly string[] };
}

/** A condition of docs/reference/querying.md#filters. */
export interface Condition<Field extends string> {
  readonly id: string;
  readonly field: Field;
  readonly operator: string;
  readonly value?: unknown;
  readonly valueTo?: unknown;
}

/** docs/reference/querying.md#parameters */
export interface Listing<Read, Field extends Name<Read>> extends Reading<Read, Field> {
  /** Equal to all of these; null: blank. */
  readonly where?: { readonly [Key in Name<Read>]?: Read[Key] | null };
  readonly whereIn?: { readonly [Key in Name<Read>]?: readonly Read[Key][] };
  readonly filters?: { readonly logic: 'and' | 'or'; readonly conditions: readonly Condition<Name<Read>>[] };
  /** Up to two fields; `-` before one: descending. */
  readonly sort?: readonly (Name<Read> | `-${Name<Read>}`)[];
  readonly search?: string;
  readonly searchFields?: readonly Name<Read>[];
  /** Records per page, 200 at most. */
  readonly take?: number;
  readonly includeTotal?: boolean;
  readonly cursor?: string;
}

export interface Page<Row> {
  readonly records: readonly Row[];
  readonly nextCursor: string | null;
  /** With `includeTotal`. */
  readonly total?: number;
}

/** A list: `for await` reads record by record and fetches pages as they are needed. */
export interface Records<Row> extends AsyncIterable<Row> {
  /** One page, the first unless `cursor` was given. */
  page(): Promise<Page<Row>>;
  /** Page by page, to the end. */
  pages(): AsyncIterable<Page<Row>>;
}

/** Transitions and actions of a record in its state; docs/reference/transitions.md#the-list. */
export interface Transition {
  readonly transitionKey: string;
  readonly label: string;
  readonly description: string | null;
  readonly kind: 'transition' | 'action';
  readonly fromState: string | null;
  readonly toState: string | null;
  readonly available: boolean;
  readonly unavailableReasons: readonly { readonly code: string; readonly message: string }[];
  readonly requiresComment: boolean;
  readonly requiresApproval: boolean;
  /** JSON Schema of `input`; null: it takes none. */
  readonly input: unknown;
}

export interface Executed<Read> {
  readonly executionId: string;
  readonly fromState: string | null;
  readonly toState: string | null;
  /** With the fields that the caller reads. */
  readonly record: Found<Partial<Read>, keyof Read>;
}

/** Of a change: a key of the caller's own, for work that another process may have to finish. */
export interface Changing {
  readonly idempotencyKey?: string | undefined;
  /** Answers DUPLICATE_RULE: the token from its details (docs/reference/duplicates.md#confirming). */
  readonly duplicateConfirmation?: string | undefined;
}

const part = encodeURIComponent;

export class ErpObject<B extends Bodies> {
  readonly #http: Http;
  readonly #path: string;

  constructor(http: Http, apiName: string) {
    this.#http = http;
    this.#path = `/data/${part(apiName)}`;
  }

  /** Records that match, of all pages. */
  list<Field extends Name<B['read']> = Name<B['read']>>({
    fields,
    sort,
    cursor,
    ...rest
  }: Listing<B['read'], Field> = {}): Records<Found<B['read'], Field>> {
    const read = async (at: string | undefined): Promise<Page<Found<B['read'], Field>>> => {
      const body = {
        ...rest,
        includeEtag: true,
        ...(fields ? { fields: withId(fields) } : {}),
        ...(sort ? { sort: sort.map((name) => ({ id: name.replace(/^-/, ''), desc: name.startsWith('-') })) } : {}),
        ...(at === undefined ? {} : { cursor: at }),
      };
      return (await this.#http.send('POST', `${this.#path}/query`, { body, read: true })).body;
    };
    const all = () => pages(read, ({ nextCursor }) => nextCursor, cursor);
    return {
      page: () => read(cursor),
      pages: all,
      async *[Symbol.asyncIterator]() {
        for await (const { records } of all()) yield* records;
      },
    };
  }

  async get<Field extends Name<B['read']> = Name<B['read']>>(
    id: string,
    { fields, expand }: Reading<B['read'], Field> = {},
  ): Promise<Found<B['read'], Field>> {
    const { body, headers } = await this.#http.send('GET', `${this.#path}/${part(id)}`, {
      query: {
        ...(fields ? { fields: withId(fields).join(',') } : {}),
        ...(expand ? { expand: expandText(expand) } : {}),
      },
    });
    return versioned(body, headers);
  }

  async create(body: B['create'], options: Changing = {}): Promise<Found<B['read'], keyof B['read']>> {
    const reply = await this.#http.send('POST', this.#path, { body, ...sent(options) });
    return versioned(reply.body, reply.headers);
  }

  /**
   * Changes the version that was read. Throws ConflictError with both versions if the record was changed
   * since; nothing is written then.
   */
  async update<Base extends Versioned>(
    record: Base,
    changes: B['update'],
    options: Changing = {},
  ): Promise<Found<B['read'], keyof B['read']>> {
    const call = { body: changes, ...sent(options, record._etag) };
    const reply = await this.#unlessChanged(record, changes, () =>
      this.#http.send('PATCH', `${this.#path}/${part(record.id)}`, call),
    );
    return versioned(reply.body, reply.headers);
  }

  /** Creates or changes the record with this external id. */
  async upsert(
    externalIdField: Name<B['read']>,
    value: string | number,
    body: Partial<B['create']>,
    { createOnly, ...options }: Changing & { readonly createOnly?: boolean | undefined } = {},
  ): Promise<Found<B['read'], keyof B['read']>> {
    const { headers, ...key } = sent(options);
    const reply = await this.#http.send('PUT', `${this.#path}/by/${part(externalIdField)}/${part(value)}`, {
      body,
      ...key,
      headers: { ...headers, 'if-none-match': createOnly ? '*' : undefined },
    });
    return versioned(reply.body, reply.headers);
  }

  /** Moves the version that was read to the recycle bin. */
  async delete(record: Versioned, options: Changing = {}): Promise<void> {
    await this.#unlessChanged(record, null, () =>
      this.#http.send('DELETE', `${this.#path}/${part(record.id)}`, sent(options, record._etag)),
    );
  }

  /** Transitions and actions of a record, those that are not available with the reasons. */
  async transitions(record: { readonly id: string }): Promise<readonly Transition[]> {
    return (await this.#http.send('GET', `${this.#path}/${part(record.id)}/transitions`)).body.records;
  }

  /** Executes a transition or action on the version that was read. */
  async execute(
    record: Versioned,
    transitionKey: string,
    {
      input,
      comment,
      ...options
    }: Changing & { readonly input?: object | undefined; readonly comment?: string | undefined } = {},
  ): Promise<Executed<B['read']>> {
    const body = { ...(input ? { input } : {}), ...(comment === undefined ? {} : { comment }) };
    const path = `${this.#path}/${part(record.id)}/transitions/${part(transitionKey)}`;
    const call = { body, ...sent(options, record._etag) };
    const reply = await this.#unlessChanged(record, body, () => this.#http.send('POST', path, call));
    return { ...reply.body, record: versioned(reply.body.record, reply.headers) };
  }

  async #unlessChanged<Reply, Base extends Versioned>(
    base: Base,
    changes: unknown,
    send: () => Promise<Reply>,
  ): Promise<Reply> {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof ErpError) || error.status !== 412) throw error;
      // If the record cannot be read either, the conflict remains what is reported.
      const current = await this.get(base.id).catch(() => null);
      throw new ConflictError(error, { base, changes, current });
    }
  }
}

const withId = (fields: readonly string[]): string[] => [...new Set(['id', ...fields])];

const expandText = (expand: { readonly [reference: string]: readonly string[] | undefined }): string =>
  Object.entries(expand)
    .map(([reference, fields]) => `${reference}(${fields?.join(',')})`)
    .join(',');

const versioned = <Read extends object>(body: Read, headers: Headers): Read & { _etag: string } => ({
  ...body,
  _etag: headers.get('etag') ?? '',
});

const sent = ({ idempotencyKey, duplicateConfirmation }: Changing, etag?: string) => ({
  idempotencyKey,
  headers: { 'if-match': etag, 'x-duplicate-confirmation': duplicateConfirmation },
});
