import { PlatformError } from './platform-error.ts';

/** 403 for users without the API permission; gateway, metadata and data each refuse with it. */
export const apiAccessDisabled = (): PlatformError =>
  new PlatformError('API_ACCESS_DISABLED', 'The user has no permission to use the API.', {
    details: { layer: 'objectPermission' },
  });
