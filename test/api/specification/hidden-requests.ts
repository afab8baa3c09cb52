/** Random requests of a user, with names and ids that are visible, hidden, or never existed. */
import fc from 'fast-check';
import {
  FIELDS,
  HIDDEN,
  HIDDEN_FIELDS,
  HIDDEN_OBJECTS,
  idOf,
  nowhereId,
  OBJECTS,
  type ObjectName,
  VISIBLE,
  vaultId,
} from './hidden-world.ts';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** A dry run of the change. */
  readonly check?: boolean;
  /** Ask for the record first and send its ETag: its version is no secret. */
  readonly etagOf?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Follow nextCursor to the end. */
  readonly follow?: boolean;
}

/** Texts and ids that differ between the tenants are written `{{user:vic}}` and `{{new:3}}`. */
export class Requests {
  readonly #g: fc.GeneratorValue;
  readonly #news: Readonly<Record<ObjectName, readonly number[]>>;

  constructor(g: fc.GeneratorValue, news: Readonly<Record<ObjectName, readonly number[]>>) {
    this.#g = g;
    this.#news = news;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#int(0, list.length - 1)]!;
  }
  #int(min: number, max: number): number {
    return this.#g(fc.integer, { min, max });
  }
  #chance(of: number): boolean {
    return this.#int(1, of) === 1;
  }
  #some<T>(list: readonly T[], max: number): T[] {
    return Array.from({ length: this.#int(1, max) }, () => this.#pick(list));
  }

  #object(): ObjectName {
    return this.#pick(['Firm__c', 'Deal__c', 'Deal__c', 'Deal__c', 'Line__c'] as const);
  }
  /** Sometimes a hidden name, or an unknown one. */
  #anyObject(): string {
    return this.#chance(8) ? this.#pick([...HIDDEN_OBJECTS, 'Zault__c', 'User']) : this.#object();
  }
  #field(object: string): string {
    const known = (OBJECTS as readonly string[]).includes(object) ? (object as ObjectName) : this.#object();
    if (this.#chance(8)) return this.#pick(Object.keys(HIDDEN_FIELDS[known]));
    if (this.#chance(20)) return this.#pick(['Zecret__c', 'Text__c', 'ownerId', 'toString']);
    return this.#pick([
      ...Object.keys(FIELDS[known]),
      'id',
      'name',
      'ownerId',
      'createdAt',
      'updatedAt',
      'recordVersion',
      'recordTypeApiName',
    ]);
  }
  #visibleId(object: ObjectName): string {
    const news = this.#news[object];
    if (news.length > 0 && this.#chance(4)) return `{{new:${this.#pick(news)}}}`;
    return idOf[object](this.#pick({ Firm__c: VISIBLE.firms, Deal__c: VISIBLE.deals, Line__c: VISIBLE.lines }[object]));
  }
  #id(object: string): string {
    const known = (OBJECTS as readonly string[]).includes(object) ? (object as ObjectName) : null;
    if (known === null) return this.#chance(3) ? nowhereId(this.#int(0, 5)) : vaultId(this.#pick(HIDDEN.vaults));
    if (this.#chance(3))
      return idOf[known](this.#pick({ Firm__c: HIDDEN.firms, Deal__c: HIDDEN.deals, Line__c: HIDDEN.lines }[known]));
    if (this.#chance(10)) return nowhereId(this.#int(0, 5));
    return this.#visibleId(known);
  }

  #value(object: string, field: string): unknown {
    if (this.#chance(25)) return this.#pick([null, '', 1, 'x', true, {}, []]);
    switch (field) {
      case 'id':
        return this.#id(object);
      case 'ownerId':
        return `{{user:${this.#pick(['uma', 'uma', 'vic', 'max', 'wes'])}}}`;
      case 'Firm__c':
      case 'Deal__c':
        return this.#chance(6)
          ? this.#pick([
              { Ext__c: `D${this.#int(0, 30)}` },
              { Code__c: `C${this.#int(0, 30)}` },
              { Secret__c: 'secretword 1' },
              { Zecret__c: 'secretword 1' },
            ])
          : this.#id(field);
      case 'Vault__c':
        return this.#chance(3) ? { Text__c: 'V1' } : vaultId(this.#int(0, 35));
      case 'Amount__c':
      case 'Double__c':
      case 'SecretAmount__c':
      case 'Twice__c':
      case 'Cost__c':
        return this.#pick([0, 10.5, 21, 31.5, 37, 74, 84, 105]);
      case 'Qty__c':
      case 'Lines__c':
      case 'recordVersion':
        return this.#int(0, 5);
      case 'Close__c':
        return `2026-0${this.#int(1, 9)}-1${this.#int(0, 9)}`;
      case 'createdAt':
      case 'updatedAt':
        return `2026-0${this.#int(1, 9)}-1${this.#int(0, 9)}T00:00:00Z`;
      case 'Stage__c':
        return this.#pick(['new', 'won', 'closed']);
      case 'Color__c':
        // Blue conflicts with hidden values: see the exceptions.
        return this.#pick(['red', 'green', 'black']);
      case 'Mode__c':
        return this.#pick(['plain', 'odd']);
      case 'Phase__c':
        return this.#pick(['early', 'late']);
      case 'recordTypeApiName':
        return this.#pick(['Big', 'Small', 'Huge']);
      case 'Tax__c':
        return this.#pick([`DE ${this.#int(0, 20)}`, `de${this.#int(0, 20)}`]);
      case 'Ext__c':
        return `${this.#pick(['D', 'F'])}${this.#int(0, 34)}`;
      case 'Code__c':
        // Unique across hidden records as well: uses only values of visible records, and new ones.
        return this.#pick([`C${this.#int(0, 15)}`, `N${this.#int(0, 10_000)}`]);
      case 'City__c':
        return this.#pick(['Bonn', 'Porto', 'Oslo', 'Lyon', 'Rome']);
      case 'Secret__c':
      case 'Rating__c':
        return `secretword ${this.#int(0, 4)}`;
      case 'name':
        return this.#pick([
          `${this.#word()} deal ${this.#pick(['north', 'south', 'east', 'west'])}`,
          `${this.#word()} firm ${this.#int(0, 7)}`,
          `line ${this.#word()}`,
        ]);
      default:
        return this.#pick([`${this.#word()} Bonn`, 'nudged', 'secretword 1']);
    }
  }
  #word(): string {
    return this.#pick(['alpha', 'beta', 'gamma', 'delta', 'omega']);
  }

  #condition(object: string, deep = false): Record<string, unknown> {
    const related = !deep && this.#chance(4);
    const id = this.#pick(['a', 'b', 'c']);
    if (related) {
      const target = this.#pick(['Deal__c', 'Line__c', 'Firm__c', ...HIDDEN_OBJECTS, 'Zault__c']);
      const value = {
        objectApiName: target,
        field: this.#pick(['Deal__c', 'Firm__c', 'Deal__c', 'Firm__c', 'id', 'Vault__c', this.#field(target)]),
        conditions: Array.from({ length: this.#int(0, 2) }, () => this.#condition(target, true)),
      };
      return { id, field: this.#pick(['id', 'id', 'Firm__c', 'Deal__c', 'Vault__c']), operator: 'in_related', value };
    }
    const field = this.#field(object);
    const operator = this.#pick(
      'eq neq contains not_contains starts_with is_blank is_not_blank gt gte lt lte between in not_in'.split(' '),
    );
    const value = this.#value(object, field);
    return {
      id,
      field,
      operator,
      ...(operator.startsWith('is_')
        ? {}
        : { value: operator === 'in' || operator === 'not_in' ? [value, this.#value(object, field)] : value }),
      ...(operator === 'between' ? { valueTo: this.#value(object, field) } : {}),
    };
  }

  #query(object: string): Record<string, unknown> {
    const query: Record<string, unknown> = {};
    const fields = (max: number): string[] => this.#some([0, 1, 2], max).map(() => this.#field(object));
    if (this.#chance(2)) query['includeTotal'] = true;
    if (this.#chance(2)) query['take'] = this.#pick([1, 3, 5, 10, 200, 500]);
    if (this.#chance(4)) query['includeEtag'] = true;
    if (this.#chance(3)) query['fields'] = fields(3);
    if (this.#chance(4)) {
      const field = this.#field(object);
      query['where'] = { [field]: this.#value(object, field) };
    }
    if (this.#chance(6)) {
      const field = this.#field(object);
      query['whereIn'] = { [field]: [this.#value(object, field), this.#value(object, field)] };
    }
    if (this.#chance(2))
      query['filters'] = {
        logic: this.#pick(['and', 'or']),
        conditions: this.#some([0, 1, 2], 2).map(() => this.#condition(object)),
      };
    if (this.#chance(3)) query['sort'] = fields(2).map((field) => ({ id: field, desc: this.#chance(2) }));
    else if (this.#chance(4)) query['orderBy'] = this.#field(object);
    if (this.#chance(4)) {
      query['search'] = this.#pick([
        'alpha',
        'beta deal',
        'Bonn',
        'secretword',
        'sec',
        'north',
        'firm',
        'nothing',
        'V1',
      ]);
      if (this.#chance(2)) query['searchFields'] = fields(2);
    }
    if (this.#chance(8)) query['skip'] = this.#int(0, 12);
    return query;
  }

  /** As parameters of a GET. */
  static parameters(query: Record<string, unknown>): string {
    const parts = Object.entries(query).map(([name, value]) => {
      const list = name === 'fields' || name === 'searchFields';
      const text = list
        ? (value as string[]).join()
        : typeof value === 'object'
          ? JSON.stringify(value)
          : String(value);
      return `${name}=${encodeURIComponent(text)}`;
    });
    return parts.length ? `?${parts.join('&')}` : '';
  }

  #body(object: ObjectName, whole: boolean): Record<string, unknown> {
    const body: Record<string, unknown> = {};
    if (whole || this.#chance(3)) body['name'] = this.#value(object, 'name');
    if (whole && object === 'Line__c') body['Deal__c'] = this.#id('Deal__c');
    for (let n = this.#int(0, 3); n > 0; n--) {
      const field = this.#chance(3)
        ? this.#field(object)
        : this.#pick(Object.keys(FIELDS[object]).filter((name) => !/^(Stage|Double|Lines)__c$/.test(name)));
      body[field] = this.#value(object, field);
    }
    if (!whole && Object.keys(body).length === 0) body['name'] = this.#value(object, 'name');
    return body;
  }

  next(): Request {
    const check = this.#chance(4);
    const object = this.#object();
    switch (this.#int(0, 27)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: {
        const of = this.#anyObject();
        return { method: 'GET', path: `/data/${of}${Requests.parameters(this.#query(of))}`, follow: this.#chance(3) };
      }
      case 6:
      case 7:
      case 8: {
        const of = this.#anyObject();
        return { method: 'POST', path: `/data/${of}/query`, body: this.#query(of), follow: this.#chance(3) };
      }
      case 9:
      case 10: {
        const of = this.#anyObject();
        const fields = this.#chance(3) ? `?fields=${this.#field(of)},${this.#field(of)}` : '';
        const headers = this.#chance(3) ? { 'if-none-match': this.#pick(['"1"', '"2"', '*']) } : {};
        return { method: this.#pick(['GET', 'GET', 'HEAD']), path: `/data/${of}/${this.#id(of)}${fields}`, headers };
      }
      case 11:
      case 12:
      case 13:
        return { method: 'POST', path: `/data/${object}`, body: this.#body(object, true), check };
      case 14:
      case 15:
      case 16: {
        const path = `/data/${object}/${this.#id(object)}`;
        const etag = this.#chance(8) ? { headers: { 'if-match': '"zz"' } } : { etagOf: path };
        return { method: 'PATCH', path, body: this.#body(object, false), check, ...etag };
      }
      case 17: {
        const path = `/data/${object}/${this.#id(object)}`;
        return { method: 'DELETE', path, check: !this.#chance(3), etagOf: path };
      }
      case 18:
        return { method: 'POST', path: `/data/${object}/${this.#id(object)}/restore`, check };
      case 19:
      case 20: {
        const of = this.#pick(['Firm__c', 'Deal__c'] as const);
        const field = this.#pick(['Ext__c', 'Ext__c', 'Code__c', 'Secret__c', 'Zecret__c', 'Rating__c', 'name']);
        const body = this.#body(of, true);
        const headers = this.#chance(6) ? { 'if-none-match': '*' } : this.#chance(8) ? { 'if-match': '"1"' } : {};
        const value = field === 'Secret__c' ? 'secretword%201' : this.#value(of, field === 'name' ? 'name' : field);
        return {
          method: 'PUT',
          path: `/data/${of}/by/${field}/${encodeURIComponent(decodeURIComponent(String(value)))}`,
          check,
          body,
          headers,
        };
      }
      case 21:
        return {
          method: 'GET',
          path: `/data/${object}/${this.#id(object)}/history${this.#chance(2) ? '?take=2' : ''}`,
          follow: this.#chance(2),
        };
      case 22: {
        const path = `/data/${object}/${this.#id(object)}/shares`;
        if (this.#chance(2)) return { method: 'GET', path };
        if (this.#chance(4)) return { method: 'DELETE', path: `${path}/${nowhereId(this.#int(0, 3))}` };
        return {
          method: 'POST',
          path,
          body: this.#pick([
            { principalType: 'user', principalId: `{{user:${this.#pick(['vic', 'wes'])}}}`, access: 'read' },
            { principalType: 'role', principalId: this.#pick(['Rep', 'Nobody']), access: 'edit' },
          ]),
        };
      }
      case 23: {
        const operation = this.#pick(['read', 'create', 'update', 'delete', 'transition']);
        const body = {
          operation,
          ...(operation === 'transition' ? { transitionKey: this.#pick(['win', 'age', 'Nudge', 'zap']) } : {}),
          ...(/read|create|update/.test(operation) && this.#chance(2) ? { field: this.#field(object) } : {}),
        };
        return { method: 'POST', path: `/data/${object}/${this.#id(object)}/access/explain`, body };
      }
      case 24:
        return { method: 'GET', path: `/data/${object}/${this.#id(object)}/transitions` };
      case 25: {
        const path = `/data/${object}/${this.#id(object)}`;
        const key = this.#pick(['win', 'close', 'Nudge', 'Nudge', 'age', 'zap']);
        return { method: 'POST', path: `${path}/transitions/${key}`, body: {}, check, etagOf: path };
      }
      case 26:
        return { method: 'GET', path: `/data/${this.#anyObject()}/changes`, follow: true };
      default: {
        const of = this.#anyObject();
        return {
          method: 'GET',
          path: this.#pick([`/objects`, `/objects/${of}/describe`, `/objects/${of}/schema.json`, '/events/audit']),
        };
      }
    }
  }
}
