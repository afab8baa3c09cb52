/** Which failures pass by themselves: the database or another service is away. They are answered 503, not 500. */
import { isConnectionError } from '../../mixins/database/database.ts';

const AWAY = new Set(['ServiceNotFoundError', 'ServiceNotAvailableError', 'RequestTimeoutError', 'QueueIsFullError']);

export const RETRY_AFTER_SECONDS = 1;

export const isUnavailable = (error: unknown): boolean =>
  isConnectionError(error) || AWAY.has((error as { name?: string } | null)?.name ?? '');
