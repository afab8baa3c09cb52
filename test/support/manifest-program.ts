/**
 * A program that knows the base address and the assistant manifest, and nothing else: no path, no name of a header or
 * parameter stands here. It signs in and follows workflows as docs/reference/assistant-manifest.md describes them.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';

type Json = Readonly<Record<string, unknown>>;
/** Named values of a workflow under way. */
type Values = Map<string, unknown>;

interface Condition {
  name: string;
  in?: unknown[];
}

interface Step {
  id: string;
  operationId: string;
  takes?: Record<string, { from?: string; value?: unknown; new?: string }>;
  gives?: Record<string, string>;
  ask?: string;
  again?: Condition & { afterSeconds?: number };
  onError?: { code: string; gives?: Record<string, string>; if?: Condition; goTo: string }[];
  next?: string | null;
}

export interface Manifest {
  baseUrlTemplate: string;
  openapi: { url: string; sha256: string };
  guides: { url: string; sha256: string }[];
  auth: {
    metadataUrl: string;
    header: { name: string; value: string };
    ways: {
      id: string;
      client: { clientId: string; redirectUris?: string[] };
      steps: {
        endpoint: string;
        method: string;
        headers?: Record<string, string>;
        takes: Record<string, string>;
        gives: Record<string, string>;
      }[];
    }[];
  };
  operations: { operationId: string; method: string; path: string; success: number[] }[];
  workflows: { id: string; scopes: string[]; steps: Step[] }[];
}

/** The person at the program: opens an address in a browser and comes back with the redirect's parameters. */
export type Person = (address: URL, redirectUri: string) => Promise<URLSearchParams>;
/** Decision after a step, where it asks for one and elsewhere, or before it ends with an error. */
type Decide = (at: string, values: Values) => unknown;

interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

export class ManifestProgram {
  /** Steps as they were answered: `update 412`. */
  readonly trail: string[] = [];
  /** Workflows that it has followed to their end. */
  readonly followed = new Set<string>();
  private readonly baseUrl: string;
  private readonly manifest: Manifest;
  private authorization = '';

  constructor(baseUrl: string, manifest: Manifest) {
    this.baseUrl = baseUrl;
    this.manifest = manifest;
  }

  /** The way `person`: a user is at the program. */
  async signIn(person: Person, workflowIds: readonly string[]): Promise<void> {
    const { client } = this.way('person');
    const codeVerifier = randomBytes(32).toString('base64url');
    const given = {
      clientId: client.clientId,
      redirectUri: client.redirectUris![0]!.replace('{port}', '8976'),
      state: randomUUID(),
      codeVerifier,
      codeChallenge: createHash('sha256').update(codeVerifier).digest('base64url'),
    };
    await this.goWay('person', given, workflowIds, person);
  }

  /** A way to a token, with the values that it names. */
  async goWay(id: string, given: Json, workflowIds: readonly string[], person?: Person): Promise<void> {
    const { auth } = this.manifest;
    const metadata = (await (await fetch(this.address(auth.metadataUrl))).json()) as Record<string, string>;
    const scope = [...new Set(workflowIds.flatMap((workflow) => this.workflow(workflow).scopes))].join(' ');
    const values: Values = new Map<string, unknown>(Object.entries({ scope, ...given }));
    for (const { endpoint, method, headers = {}, takes, gives } of this.way(id).steps) {
      const parameters = new URLSearchParams(
        Object.entries(takes).map(([name, value]): [string, string] => [name, filled(value, values)]),
      );
      const { pathname } = new URL(metadata[endpoint]!);
      const url = new URL(pathname, this.baseUrl);
      if (method === 'GET') {
        url.search = parameters.toString();
        const redirect = await person!(url, String(values.get('redirectUri')));
        for (const [name, place] of Object.entries(gives)) values.set(name, redirect.get(place.slice('query:'.length)));
      } else {
        const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, filled(value, values)]);
        const response = await fetch(url, { method, headers: sent, body: parameters });
        const answer = { status: response.status, headers: response.headers, body: await response.json() };
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        for (const [name, place] of Object.entries(gives)) values.set(name, at(answer, place));
      }
    }
    this.authorization = filled(auth.header.value, values);
  }

  /** Follows a workflow to its end; returns all named values. */
  async run(workflowId: string, inputs: Json, decide: Decide = () => undefined): Promise<Values> {
    const { steps } = this.workflow(workflowId);
    const values: Values = new Map(Object.entries(inputs));
    const named = (id: string): Step => steps.find((one) => one.id === id)!;
    let step: Step | undefined = steps[0];
    while (step) {
      const answer = await this.send(step, values);
      this.trail.push(`${step.id} ${answer.status}`);
      const operation = this.operation(step.operationId);
      if (operation.success.includes(answer.status)) {
        for (const [name, place] of Object.entries(step.gives ?? {})) values.set(name, at(answer, place));
        await decide(step.id, values);
        if (step.again && holds(step.again, values)) {
          await new Promise((resolve) => setTimeout(resolve, (step?.again?.afterSeconds ?? 0) * 1_000));
          continue;
        }
        if (step.next === null) break;
        step = step.next === undefined ? steps[steps.indexOf(step) + 1] : named(step.next);
        continue;
      }
      const { code } = answer.body as { code: string };
      const known = step.onError?.find((one) => one.code === code);
      assert.ok(known, `${step.id}: ${JSON.stringify(answer.body)}`);
      for (const [name, place] of Object.entries(known.gives ?? {})) values.set(name, at(answer, place));
      assert.ok(!known.if || holds(known.if, values), `${step.id}: ${code} ends it`);
      await decide(`${step.id} ${code}`, values);
      step = named(known.goTo);
    }
    this.followed.add(workflowId);
    return values;
  }

  private async send(step: Step, values: Values): Promise<Answer> {
    const { method, path } = this.operation(step.operationId);
    let filledPath = path;
    const query = new URLSearchParams();
    const headers: Record<string, string> = { [this.manifest.auth.header.name]: this.authorization };
    let body: unknown;
    for (const [place, source] of Object.entries(step.takes ?? {})) {
      const value = source.from === undefined ? (source.new ? randomUUID() : source.value) : values.get(source.from);
      if (value === undefined || value === null) continue;
      const [kind, name = ''] = place.split(':');
      if (kind === 'path') filledPath = filledPath.replace(`{${name}}`, encodeURIComponent(String(value)));
      else if (kind === 'query') query.set(name, typeof value === 'string' ? value : JSON.stringify(value));
      else if (kind === 'header') headers[name] = String(value);
      else if (place === '') body = value;
      else body = { ...(body as Json | undefined), [place.slice(1)]: value };
    }
    // The body of an operation that takes one is never left out.
    if (body === undefined && method === 'POST') body = {};
    const response = await fetch(`${this.address(this.manifest.baseUrlTemplate)}${filledPath}?${query}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
  }

  private readonly address = (template: string): string => template.replace('{base_url}', this.baseUrl);
  private way(id: string): Manifest['auth']['ways'][number] {
    return this.manifest.auth.ways.find((one) => one.id === id)!;
  }
  private workflow(id: string): Manifest['workflows'][number] {
    return this.manifest.workflows.find((one) => one.id === id)!;
  }
  private operation(id: string): Manifest['operations'][number] {
    return this.manifest.operations.find(({ operationId }) => operationId === id)!;
  }
}

const filled = (template: string, values: Values): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => String(values.get(name)));

function holds({ name, in: list }: Condition, values: Values): boolean {
  const value = values.get(name) ?? null;
  return list ? list.includes(value) : value !== null;
}

/** The value at a place of an answer: a header, or a JSON Pointer into the body. */
function at({ headers, body }: Answer, place: string): unknown {
  if (place.startsWith('header:')) return headers.get(place.slice('header:'.length));
  return place
    .split('/')
    .slice(1)
    .reduce<unknown>((value, key) => (value as Json | undefined)?.[key], body);
}
