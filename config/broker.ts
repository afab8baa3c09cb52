/**
 * Broker options shared by every process: CBOR over NATS (bytes stay bytes), errors of the catalogue survive the bus,
 * structured logs without secrets.
 */
import { createRequire } from 'node:module';
import { type BrokerOptions, Errors } from 'moleculer';
import { type Logger, type LoggerOptions, pino } from 'pino';
import { PlatformError } from '../lib/errors/platform-error.ts';
import { ExactNumber } from '../lib/json/exact-number.ts';
import { membersOf } from '../lib/json/objects.ts';
import { LIMITS } from '../lib/limits.ts';
import type { Config } from './env.ts';
import { readableLines } from './text-log.ts';

/** Rebuilds a PlatformError from what the bus carried; every other error keeps Moleculer's own treatment. */
class CatalogueRegenerator extends Errors.Regenerator {
  override extractPlainError(error: Error): Errors.PlainMoleculerError {
    const plain = super.extractPlainError(error);
    if (error instanceof PlatformError) plain.data = error.toWire();
    return plain;
  }

  // Not restoreCustomError: after that hook Moleculer writes fields into the error, and ours are read-only.
  override restore(plain: Errors.PlainMoleculerError, payload: Record<string, unknown>): Error {
    if (plain.name === 'PlatformError') return PlatformError.fromWire(plain.data);
    return super.restore(plain, payload);
  }
}

// Numbers with more digits than a double keeps stay what they are on the bus. Moleculer requires cbor-x, so the
// extension must go into that same (CommonJS) instance; the tag is from the range that IANA leaves to first come, first
// served.
const EXACT_NUMBER_TAG = 46_301;
(createRequire(import.meta.url)('cbor-x') as typeof import('cbor-x')).addExtension({
  Class: ExactNumber,
  tag: EXACT_NUMBER_TAG,
  encode: (value: ExactNumber, encode: (part: unknown) => Buffer) => encode(value.text),
  decode: (text: string) => new ExactNumber(text),
});

/** Log fields that may carry a secret are cut out wherever they stand. */
const REDACTED = [
  '*.authorization',
  '*.password',
  '*.token',
  '*.access_token',
  '*.refresh_token',
  '*.client_secret',
  '*.cookie',
  'authorization',
  'password',
  'token',
  'cookie',
];

/** Fields of an error in the log. Never the whole object: a driver's error carries its connection. */
function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const { code } = membersOf(error);
  return {
    name,
    message,
    ...(code === undefined ? {} : { code }),
    stack,
    ...(cause ? { cause: loggedError(cause) } : {}),
  };
}

/** Fields added to each line, such as the current request. */
type LogFields = () => object;

const logOptions = ({ logLevel, nodeId }: Config, fields?: LogFields): LoggerOptions => ({
  level: logLevel,
  redact: { paths: REDACTED, censor: '[redacted]' },
  base: { node: nodeId },
  serializers: { err: loggedError },
  ...(fields ? { mixin: fields } : {}),
});

/** The log of what belongs to no service of the process: the same lines as those of the broker. */
export const processLog = (config: Config, fields?: LogFields): Logger => {
  const destination = destinationOf(config);
  return destination ? pino(logOptions(config, fields), destination) : pino(logOptions(config, fields));
};

/** null: the lines of JSON go to stdout as they are. */
const destinationOf = ({ logFormat }: Config): { write(lines: string): void } | null =>
  logFormat === 'json' ? null : { write: (lines) => void process.stdout.write(readableLines(lines)) };

const TRANSIT = {
  maxQueueSize: 20_000,
  disableReconnect: false,
  disableVersionCheck: true,
  // A process that says it is ready is known to the others at once, not after a second. Missing in Moleculer's types.
  serviceChangedDebounceTime: 0,
};

/** Without a transporter: a process on a bus adds the one of mixins/bus/nats-bus.ts or mixins/control-socket.ts. */
export function brokerOptions(config: Config, fields?: LogFields): BrokerOptions {
  return {
    namespace: 'erp',
    nodeID: config.nodeId,
    serializer: 'CBOR',
    logger:
      config.logLevel === 'silent'
        ? false
        : {
            type: 'Pino',
            options: {
              pino: { options: logOptions(config, fields), destination: destinationOf(config) },
              level: config.logLevel,
            },
          },
    logLevel: config.logLevel === 'silent' ? 'fatal' : config.logLevel,
    // A process without a bus calls itself alone: the limits of statements and of requests bound it, and a timer for
    // each call would cost more than the rest of it.
    requestTimeout: config.bus ? LIMITS.bus_timeout_ms : 0,
    heartbeatInterval: 1,
    heartbeatTimeout: 4,
    contextParamsCloning: false,
    tracking: { enabled: true, shutdownTimeout: 8_000 },
    registry: { strategy: 'RoundRobin', preferLocal: true },
    errorHandler: null,
    errorRegenerator: new CatalogueRegenerator(),
    metrics: false,
    validator: false,
    cacher: false,
    transit: TRANSIT,
    skipProcessEventRegistration: true,
    // They would tell every node on the bus about this process: its options, its machine.
    internalServices: false,
  };
}
