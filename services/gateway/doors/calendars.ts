/**
 * Calendars for programs that have the link of a user. The token in the path is the right to read: it stands in no log, trace
 * or metric, which have the label of the request. Source: docs/reference/calendar.md#subscriptions.
 */
import type { ServiceBroker } from 'moleculer';
import { call } from '../../../contracts/call.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, type ReplyOptions, send } from '../edge/reply.ts';
import type { Budgets } from '../pipeline/budget.ts';
import { methodNotAllowed, pageNotFound } from '../pipeline/failures.ts';
import { abortable } from '../pipeline/index.ts';

const LINK = /^\/calendars\/([\w-]{43})\.ics$/;

const HEADERS = {
  'Cache-Control': 'private, no-cache',
  'Referrer-Policy': 'no-referrer',
  // Programs that read calendars obey robots.txt, so the path is not in it.
  'X-Robots-Tag': 'noindex',
};

interface Sources {
  readonly broker: ServiceBroker;
  readonly budgets: Budgets;
  replyOptions(): ReplyOptions;
}

/** The address has paid; a link that shows something is paid for by its user as well. */
export async function answerCalendar(x: Exchange, gateway: Sources): Promise<void> {
  const { broker, budgets } = gateway;
  x.label = 'calendar.feed';
  const [, token] = LINK.exec(x.path) ?? [];
  if (token === undefined) throw pageNotFound();
  if (x.method !== 'GET' && x.method !== 'HEAD') throw methodNotAllowed();
  const found = await abortable(x, call(broker, 'auth.calendarLinks.find', { token }));
  if (!found) throw pageNotFound();
  const { tenantName: name, ...user } = found;
  const budget = budgets.calendar(user);
  x.budget = budget;
  x.enterFlight(budgets.enter(budget, 1));
  await budgets.charge(budget, 1);
  const ifNoneMatch = x.headers['if-none-match'] ?? null;
  const { etag, body } = await abortable(x, call(broker, 'calendar.feeds.read', { ...user, name, ifNoneMatch }));
  // Weak: the answer may be compressed.
  const headers = commonHeaders(x, gateway.replyOptions(), { ...HEADERS, ETag: `W/${etag}` });
  if (!body) {
    send(x, 304, headers, null);
    return;
  }
  headers.push(
    'Content-Type',
    'text/calendar; charset=utf-8',
    'Content-Disposition',
    'inline; filename="calendar.ics"',
  );
  send(x, 200, headers, Buffer.from(body.buffer, body.byteOffset, body.length));
}
