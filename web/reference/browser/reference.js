/**
 * Shows the description of this API with Swagger UI. Signed-in users try operations out; for all others what
 * belongs to that is left away. The token is held in memory alone (sign-in.js), and never shown.
 */
import { completeSignIn, heldToken, leaveForSignIn, moveHome, revoke, SignInFailed } from '../../shared/sign-in.js';

/**
 * @typedef {{ createElement(name: string, attributes: null, text: string): unknown }} React
 * @typedef {(options: object) => unknown} Start
 * @typedef {Start & { presets: { apis: unknown } }} Bundle
 * @typedef {{ url: string, loadSpec?: boolean, headers: Record<string, string> }} Sent
 * @typedef {Shown & { name: string, required?: boolean, content?: Record<string, Shown> }} Parameter
 * @typedef {{ example?: unknown, examples?: unknown, schema?: { default?: unknown } }} Shown
 */

const { SwaggerUIBundle } = /** @type {{ SwaggerUIBundle: Bundle }} */ (/** @type {unknown} */ (globalThis));
const { description = '' } = document.body.dataset;
const METHODS = ['get', 'put', 'post', 'delete', 'patch'];

const nothing = () => () => null;

/** The button that opens an operation would hold a link, which neither keyboards nor screen readers can make out. */
const withoutLink =
  (/** @type {unknown} */ _link, /** @type {{ React: React }} */ { React }) =>
  (/** @type {{ text: string }} */ { text }) =>
    React.createElement('span', null, text);

/** Signing in is above, with this platform and its one client. */
const ownParts = (/** @type {boolean} */ signedIn) => () => ({
  wrapComponents: {
    ServersContainer: nothing,
    authorizeBtn: nothing,
    authorizeOperationBtn: nothing,
    DeepLink: withoutLink,
    ...(signedIn ? {} : { TryItOutButton: nothing }),
  },
});

const dark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followScheme);
followScheme();

/** Names what is chosen and entered, and lets the keyboard reach what scrolls. */
function mend() {
  for (const list of document.querySelectorAll('#reference select:not([aria-label])'))
    list.setAttribute('aria-label', list.className.includes('examples') ? 'Example' : 'Value');
  for (const field of document.querySelectorAll('#reference :is(input, textarea):not([aria-label])'))
    field.setAttribute('aria-label', field.getAttribute('placeholder') || 'Value');
  for (const code of document.querySelectorAll('#reference pre:not([tabindex])')) code.setAttribute('tabindex', '0');
}
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });

/** Each request gets a new key unless the user has set one. */
const EXAMPLE_KEY = crypto.randomUUID();

/**
 * Requests of the reference have the token, and go to this platform alone.
 * @param {Sent} request
 */
function withToken(request) {
  const { origin, pathname } = new URL(request.url, location.href);
  const token = heldToken();
  if (request.loadSpec || token === null || origin !== location.origin || !pathname.startsWith('/api/v1/'))
    return request;
  /** @type {Record<string, string>} */
  const headers = { ...request.headers, Authorization: `Bearer ${token}` };
  if (headers['Idempotency-Key'] === EXAMPLE_KEY) headers['Idempotency-Key'] = crypto.randomUUID();
  return { ...request, headers };
}

/**
 * The description for trying out: examples and defaults of what may be left away would be sent as they are.
 * @param {any} found
 */
function forTrying(found) {
  const operations = Object.values(found.paths).flatMap((item) => Object.values(/** @type {object} */ (item)));
  const own = operations.flatMap(({ parameters = [] }) => parameters);
  for (const parameter of /** @type {Parameter[]} */ ([...own, ...Object.values(found.components.parameters ?? {})])) {
    if (parameter.name === 'Idempotency-Key') parameter.example = EXAMPLE_KEY;
    if (parameter.required) continue;
    for (const shown of [parameter, ...Object.values(parameter.content ?? {})]) {
      delete shown.example;
      delete shown.examples;
      delete shown.schema?.default;
    }
  }
  return found;
}

/** @param {string} id */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Sign-in state, when trying out is enabled. */
async function prepareSignIn() {
  if (!document.getElementById('trying')) return false;
  part('trying').hidden = false;
  part('enter').addEventListener('click', () => {
    const access = /** @type {HTMLSelectElement} */ (part('access'));
    if (!moveHome()) leaveForSignIn(access.value);
  });
  part('leave').addEventListener('click', async () => {
    await revoke();
    location.reload();
  });
  try {
    await completeSignIn();
  } catch (error) {
    part('state').textContent = error instanceof SignInFailed ? error.message : 'The sign-in did not work.';
  }
  if (heldToken() === null) return false;
  part('state').textContent =
    'You have signed in: open an operation and try it out. What you send is real, in your name and with your permissions.';
  part('leave').hidden = false;
  part('enter').textContent = 'Sign in again';
  return true;
}

const signedIn = await prepareSignIn();
SwaggerUIBundle({
  ...(signedIn
    ? { spec: forTrying(await (await fetch(description)).json()), supportedSubmitMethods: METHODS }
    : { url: description, supportedSubmitMethods: [] }),
  dom_id: '#reference',
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [ownParts(signedIn)],
  layout: 'BaseLayout',
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  requestInterceptor: withToken,
  // The commands that it shows would show the token.
  showMutatedRequest: false,
  syntaxHighlight: { activated: false },
  // It would send the description elsewhere.
  validatorUrl: null,
});
