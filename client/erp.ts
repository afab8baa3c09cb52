/** The platform as a program sees it, as the person or program whose tokens are given. */
import { Dashboards } from './dashboards.ts';
import { type Call, Http, type HttpOptions, type Reply } from './http.ts';
import { type Bodies, ErpObject, type Untyped } from './objects.ts';

export class Erp<Objects extends { [Name in keyof Objects]: Bodies } = Untyped> {
  readonly dashboards: Dashboards;
  readonly #http: Http;

  constructor(options: HttpOptions) {
    this.#http = new Http(options);
    this.dashboards = new Dashboards(this.#http);
  }

  /** The records of an object, by its apiName. */
  object<Name extends keyof Objects & string>(apiName: Name): ErpObject<Objects[Name]> {
    return new ErpObject(this.#http, apiName);
  }

  /** Any other operation: `path` below `/api/v1`. Retries and keys are those of the other calls. */
  send(method: string, path: string, call?: Call): Promise<Reply> {
    return this.#http.send(method, path, call);
  }
}

/** `Objects` is what `erp types` has written. */
export const connect = <Objects extends { [Name in keyof Objects]: Bodies } = Untyped>(
  options: HttpOptions,
): Erp<Objects> => new Erp<Objects>(options);
