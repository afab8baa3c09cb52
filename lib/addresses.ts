/** The version of the public API, and the addresses below the host that more than one part of the platform names. */
export const API_VERSION = '1.0.0';

/** Every path of an operation begins with it. */
export const API_PREFIX = '/api/v1';

/** The documents of each version are below. */
export const VERSIONS_ROOT = '/versions/';

/** Entry point for language models (llmstxt.org): a file of the latest version, at the root. */
export const LLMS_PATH = '/llms.txt';

/** The documents of the newest version. */
export const LATEST_DOCUMENTS_PATH = '/versions/latest/docs/';

/** The page that tries operations out; it is that of the running version. */
export const REFERENCE_PATH = '/api-reference';

/** Calendars for programs that have the link of a user; its token and `.ics` follow. */
export const CALENDARS_ROOT = '/calendars/';

/** The documents of this version, at the root of a host and below the prefix of the API. */
export const DOCUMENTS_PATH = `/versions/${API_VERSION}/docs`;

/** The path of an operation with values in the place of the names in braces, percent-encoded. */
export const pathOf = (template: string, value: (name: string) => string): string =>
  template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(value(name).toWellFormed()));

export const apiUrl = (baseUrl: string): string => baseUrl + API_PREFIX;

export const documentsUrl = (baseUrl: string): string => apiUrl(baseUrl) + DOCUMENTS_PATH;

/** The page of an error code; the address is the `type` of its bodies. */
export const errorUrl = (code: string, baseUrl: string): string => `${documentsUrl(baseUrl)}/errors/${code}`;

export const PROTECTED_RESOURCE_PATH = '/.well-known/oauth-protected-resource';

/** The metadata of what stands at a path, as a protected resource (RFC 9728). */
export const protectedResourceUrl = (baseUrl: string, path: string): string => baseUrl + PROTECTED_RESOURCE_PATH + path;
