/** Runs a node:http handler, such as the provider's, on a request that arrived as data over the bus. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import inject from 'light-my-request';
import type { HttpReply, HttpRequest } from '../../contracts/auth.ts';
import { cookiesFrom, cookiesTo } from './host-cookies.ts';

/** Headers of one connection, not of the message; the gateway writes its own. */
const CONNECTION_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'content-length']);
/** Headers that a client must not be able to set; what the gateway knows takes the place of the forwarded ones. */
const NOT_FROM_CLIENTS = /^(x-forwarded-|forwarded$|x-platform-|content-length$|transfer-encoding$|expect$)/i;

export async function dispatch(
  issuer: string,
  request: HttpRequest,
  handler: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
): Promise<HttpReply> {
  let failed: unknown;
  const response = await inject(
    (req, res) => {
      handler(req, res).catch((error) => {
        failed = error;
        res.destroy(error);
      });
    },
    {
      method: request.method,
      url: request.url,
      headers: forwarded(issuer, request),
      remoteAddress: request.remoteAddress,
      ...(request.body?.length ? { payload: request.body } : {}),
    },
  ).catch((error) => {
    throw failed ?? error;
  });
  const headers: HttpReply['headers'] = { 'x-content-type-options': 'nosniff' };
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined && !CONNECTION_HEADERS.has(name))
      headers[name] = Array.isArray(value) ? value.map(String) : String(value);
  const { 'set-cookie': set } = headers;
  if (set !== undefined && isHttps(issuer)) headers['set-cookie'] = cookiesTo([set].flat(), cookieHeader(request));
  return { status: response.statusCode, headers, body: response.rawPayload };
}

const isHttps = (issuer: string): boolean => issuer.startsWith('https:');

const cookieHeader = ({ headers }: HttpRequest): string => [headers['cookie'] ?? []].flat().join('; ');

function forwarded(issuer: string, request: HttpRequest): HttpRequest['headers'] {
  const { host, protocol } = new URL(issuer);
  const headers: HttpRequest['headers'] = {};
  for (const [name, value] of Object.entries(request.headers)) if (!NOT_FROM_CLIENTS.test(name)) headers[name] = value;
  if (isHttps(issuer)) headers['cookie'] = cookiesFrom(cookieHeader(request), request.url.split('?')[0] ?? '');
  return {
    ...headers,
    host,
    'x-forwarded-proto': protocol.slice(0, -1),
    'x-forwarded-for': request.remoteAddress,
  };
}
