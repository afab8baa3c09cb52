/** A change of one record as the check that tries it out. */

interface Change {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const OPERATIONS: Readonly<Record<string, string>> = { PATCH: 'update', DELETE: 'delete', PUT: 'upsert' };

export function checkOf({ method, path, body, headers = {} }: Change): Change {
  const [, , object = '', ...parts] = path.split('/');
  const [first, second, third] = parts.map(decodeURIComponent);
  const operation =
    second === 'restore' ? 'restore' : second === 'transitions' ? 'transition' : (OPERATIONS[method] ?? 'create');
  const {
    'if-match': ifMatch,
    'if-none-match': ifNoneMatch,
    'x-duplicate-confirmation': duplicateConfirmation,
    ...rest
  } = headers;
  const key = operation === 'upsert' ? { external: { field: second, value: third } } : { id: first };
  const content = operation === 'transition' ? body : body === undefined ? {} : { fields: body };
  const transition = operation === 'transition' ? { transitionKey: third } : {};
  return {
    method: 'POST',
    path: `/data/${object}/check`,
    body: { operation, ...key, ...transition, ifMatch, ifNoneMatch, duplicateConfirmation, ...Object(content) },
    headers: rest,
  };
}
