/** `@erp-platform/client`: docs/reference/client.md. */
export type { Dashboard, Dashboards, Widget, WidgetResult, WidgetRun } from './dashboards.ts';
export { connect, type Erp } from './erp.ts';
export { ConflictError, ErpError, type ErrorBody, NetworkError, SignInError, type Violation } from './errors.ts';
export type { Call, HttpOptions, Reply, TokenSource } from './http.ts';
export type {
  Bodies,
  Changing,
  Condition,
  ErpObject,
  Executed,
  Found,
  Listing,
  Page,
  Reading,
  Records,
  Transition,
  Untyped,
  Versioned,
} from './objects.ts';
export { signInInBrowser } from './sign-in.ts';
export { clientCredentials, refreshing } from './tokens.ts';
