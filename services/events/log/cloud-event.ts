/** An event of the log in the JSON format of CloudEvents 1.0. */
import { hash } from 'node:crypto';
import { EVENT_TYPES } from '../../../contracts/event-types.ts';
import type { CloudEvent } from '../../../contracts/events.ts';
import { documentsUrl } from '../../../lib/addresses.ts';
import type { LogEvent } from './log.sql.ts';

const SEQUENCE_DIGITS = 20;

/** The number of an event in its log, whose texts sort as the numbers do. */
export const sequenceText = (sequence: number): string => String(sequence).padStart(SEQUENCE_DIGITS, '0');

/**
 * The same for each delivery of an event. Of two copies of a database that give the same number to different events, the
 * events differ in their time and request.
 */
export function eventId(tenantId: string, { outboxId, at, type, requestId }: LogEvent): string {
  const hex = hash('sha256', JSON.stringify([tenantId, outboxId, at, type, requestId]));
  const variant = '89ab'[Number.parseInt(hex.slice(16, 17), 16) % 4];
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return [...parts, hex.slice(20, 32)].join('-');
}

export const subjectOf = ({ type, object, recordId, data }: LogEvent): string => {
  const about = EVENT_TYPES[type]?.about;
  return about ? `${about[0]}/${String(data[about[1]])}` : `${object}/${recordId}`;
};

/** The JSON text of the event, in one line. `data`: its JSON. */
export function cloudEventText(tenantId: string, baseUrl: string, event: LogEvent, data: string): string {
  const subject = subjectOf(event);
  const attributes: Omit<CloudEvent, 'data'> = {
    specversion: '1.0',
    id: eventId(tenantId, event),
    source: `/tenants/${tenantId}`,
    type: event.type,
    subject,
    time: new Date(event.at).toISOString(),
    datacontenttype: 'application/json',
    dataschema: `${documentsUrl(baseUrl)}/events/${event.type}.json`,
    sequence: sequenceText(event.sequence),
    partitionkey: subject,
  };
  return `${JSON.stringify(attributes).slice(0, -1)},"data":${data}}`;
}
