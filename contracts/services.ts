/**
 * The one list of services. Everything that names them is derived from it: SERVICES of the environment, the operations,
 * the bus policy, the logins of the database, probes, manifests, test and benchmark clusters.
 */
import { type AgentActions, SERVICE as agent } from './agent.ts';
import { type AnalyticsActions, SERVICE as analytics } from './analytics.ts';
import { type AuthActions, type AuthEvents, SERVICE as auth } from './auth.ts';
import { type BulkActions, SERVICE as bulk } from './bulk.ts';
import { type CalendarActions, SERVICE as calendar } from './calendar.ts';
import { type DataActions, SERVICE as data } from './data.ts';
import { type EventsActions, type EventsEvents, SERVICE as events } from './events.ts';
import { type FilesActions, SERVICE as files } from './files.ts';
import { type GatewayActions, type GatewayEvents, SERVICE as gateway } from './gateway.ts';
import { type McpActions, type McpDoorActions, SERVICE as mcp } from './mcp.ts';
import { type MetadataActions, type MetadataEvents, SERVICE as metadata } from './metadata.ts';
import { type NotificationsActions, SERVICE as notifications } from './notifications.ts';
import { type RatelimitActions, SERVICE as ratelimit } from './ratelimit.ts';

export const SERVICES = {
  gateway,
  auth,
  data,
  metadata,
  analytics,
  ratelimit,
  agent,
  mcp,
  files,
  bulk,
  events,
  notifications,
  calendar,
} as const;

/** Actions of the services, with the types of what they carry. */
export type ServiceActions = AgentActions &
  AnalyticsActions &
  AuthActions &
  BulkActions &
  CalendarActions &
  DataActions &
  EventsActions &
  FilesActions &
  GatewayActions &
  McpActions &
  McpDoorActions &
  MetadataActions &
  NotificationsActions &
  RatelimitActions;

export type ServiceEvents = AuthEvents & EventsEvents & GatewayEvents & MetadataEvents;

export type ServiceName = keyof typeof SERVICES;

export const isServiceName = (name: string): name is ServiceName => Object.hasOwn(SERVICES, name);

export const ALL_SERVICES: readonly ServiceName[] = Object.keys(SERVICES).filter(isServiceName);

/** The identity of consoles and commands of an operator on the bus, beside those of services. It hosts none. */
export const OPERATOR = 'operator';
