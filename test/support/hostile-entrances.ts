/**
 * Requests of unauthenticated callers and provisioning clients: forms and addresses of the sign-in, parameters and tokens of OAuth, and
 * SCIM, each as long and as odd as its bounds let it. The answer may be any but a 500, and no process may stand still over it.
 */
import { type HostileGenerator, type HostileRequest, repeated } from './hostile.ts';

/** In a path: ids of a user and of a group of the tenant. */
export const USER_ID = '{userId}';
export const GROUP_ID = '{groupId}';

const BODY_BYTES = 1024 * 1024;
const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const SEARCH = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest';
const FILTER_CHARS = 2_000;
const PATH_CHARS = 1_000;

const list = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const uuid = (i: number): string => `01990000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`;
/** `inner` in so many levels of arrays. */
const nested = (levels: number, inner = ''): string => `${'['.repeat(levels)}${inner}${']'.repeat(levels)}`;

const scim =
  (name: string, method: HostileRequest['method'], path: string, body: () => string | null): HostileGenerator =>
  () => {
    const text = body();
    return {
      name: `scim: ${name}`,
      method,
      path,
      root: '/scim/v2',
      headers: text === null ? {} : { 'content-type': 'application/scim+json' },
      body: text === null ? null : Buffer.from(text),
    };
  };
const filtered = (name: string, filter: () => string): HostileGenerator[] => [
  scim(`${name} in a filter`, 'POST', '/Users/.search', () => JSON.stringify({ schemas: [SEARCH], filter: filter() })),
  () => scim(`${name} in an address`, 'GET', `/Users?filter=${encodeURIComponent(filter())}`, () => null)(),
];
const created = (name: string, fields: () => object): HostileGenerator =>
  scim(name, 'POST', '/Users', () => JSON.stringify({ userName: 'hostile@demo.example', ...fields() }));
const changed = (name: string, operations: () => unknown, path = `/Users/${USER_ID}`): HostileGenerator =>
  scim(name, 'PATCH', path, () => JSON.stringify({ schemas: [PATCH_OP], Operations: operations() }));
const members = (count: number): object[] => list(count, (i) => ({ value: uuid(i) }));

/** For a caller with the scope `users:manage`. */
export const HOSTILE_PROVISIONING: readonly HostileGenerator[] = [
  ...filtered('brackets', () => '('.repeat(FILTER_CHARS)),
  ...filtered('brackets around a condition', () => `${'('.repeat(900)}userName pr${')'.repeat(900)}`),
  ...filtered('negations', () => `${'not ('.repeat(300)}userName pr${')'.repeat(300)}`),
  ...filtered('conditions', () => list(50, (i) => `externalId eq "${i}"`).join(' or ')),
  ...filtered('levels of filters of values', () => `${'emails['.repeat(250)}type eq "a"${']'.repeat(250)}`),
  ...filtered('an open text', () => `userName eq "${'\\\\'.repeat(900)}`),
  ...filtered('quotes', () => '"'.repeat(FILTER_CHARS)),
  ...filtered('blanks', () => `userName${' '.repeat(FILTER_CHARS - 20)}pr`),
  ...filtered('points', () => `userName${'.a'.repeat(900)} pr`),
  ...filtered('colons', () => `${'urn:'.repeat(490)}userName pr`),
  ...filtered('digits', () => `userName eq ${'9'.repeat(FILTER_CHARS - 20)}`),
  ...filtered('combining marks', () => `displayName eq "${'\u0301\u0323'.repeat(900)}"`),
  ...filtered('words', () => 'and '.repeat(500)),
  scim('a filter that is too long', 'POST', '/Users/.search', () =>
    JSON.stringify({ filter: `userName eq "${'('.repeat(BODY_BYTES - 100)}"` }),
  ),
  scim('names of attributes', 'POST', '/Users/.search', () =>
    JSON.stringify({ attributes: list(60_000, (i) => `a${i}`) }),
  ),
  scim('a long name of an attribute', 'POST', '/Groups/.search', () =>
    JSON.stringify({ excludedAttributes: ['a.'.repeat(BODY_BYTES / 2 - 100)] }),
  ),
  scim('brackets', 'POST', '/Users', () => '['.repeat(BODY_BYTES)),
  scim('a value of many levels', 'POST', '/Users', () => `{"userName":${nested(BODY_BYTES / 2 - 20)}}`),
  scim('values of as many levels as allowed', 'POST', '/Users', () => `{"emails":[${list(16_000, () => nested(29))}]}`),
  scim('the same member', 'POST', '/Users', () => `{${list(60_000, () => '"userName":"a"')}}`),
  created('unknown members', () => Object.fromEntries(list(15_000, (i) => [`k${i}`, 1]))),
  created('paths as members', () => Object.fromEntries(list(9_000, (i) => [`emails[type eq "w${i}"].value`, 'a@b.c']))),
  created('addresses', () => ({ emails: list(7_000, (i) => ({ value: `a${i}@b.example`, type: 'work' })) })),
  created('roles', () => ({ roles: list(14_000, (i) => ({ value: `R${i}` })) })),
  created('combining marks', () => ({
    userName: '\u0301\u0323'.repeat(120_000),
    displayName: '\ufdfa'.repeat(90_000),
  })),
  created('letters that grow', () => ({
    name: { formatted: '\u0390\ufb03'.repeat(90_000), familyName: ' '.repeat(300_000) },
  })),
  created('words of a name', () => ({ displayName: 'a '.repeat(250_000) })),
  created('a language', () => ({ locale: repeated('a-', 500_000), timezone: repeated('A/', 250_000) })),
  created('a language of many variants', () => ({
    locale: `en-${list(150_000, (i) => `0${i.toString(36).padStart(4, '0')}`).join('-')}`,
  })),
  created('schemas', () => ({ schemas: list(50_000, (i) => `urn:${i}`) })),
  changed('operations', () => list(1_000, (i) => ({ op: 'replace', path: 'displayName', value: `${i}` }))),
  changed('operations with filters', () =>
    list(1_000, (i) => ({ op: 'add', path: `emails[type eq "w${i}"].value`, value: `a${i}@b.example` })),
  ),
  changed('operations with the longest filters', () =>
    list(800, () => ({
      op: 'remove',
      path: `emails[${list(12, (i) => `type eq "${i}${'x'.repeat(55)}"`).join(' or ')}]`,
    })),
  ),
  changed('more operations than allowed', () => list(20_000, () => ({ op: 'add' }))),
  ...['emails[', '(', '.a', '[]', ' ', 'urn:', 'not (', '"', '\\'].map((piece) =>
    changed(`a path of ${JSON.stringify(piece)}`, () =>
      list(400, () => ({ op: 'replace', path: repeated(piece, PATH_CHARS), value: 1 })),
    ),
  ),
  changed('a path that is too long', () => [{ op: 'remove', path: `emails[${'('.repeat(BODY_BYTES - 200)}` }]),
  changed('values without a path', () =>
    list(100, () => ({
      op: 'replace',
      value: Object.fromEntries(list(100, (i) => [`emails[type eq "${i}"].value`, 'a'])),
    })),
  ),
  changed('members of a group', () => [{ op: 'add', path: 'members', value: members(1_000) }], `/Groups/${GROUP_ID}`),
  changed(
    'more members than allowed',
    () => [{ op: 'add', path: 'members', value: members(14_000) }],
    `/Groups/${GROUP_ID}`,
  ),
  changed(
    'the same member',
    () => list(1_000, () => ({ op: 'add', path: 'members', value: members(10) })),
    `/Groups/${GROUP_ID}`,
  ),
  changed(
    'members by filters',
    () => list(1_000, (i) => ({ op: 'remove', path: `members[value eq "${uuid(i)}"]` })),
    `/Groups/${GROUP_ID}`,
  ),
  scim('members of a whole group', 'PUT', `/Groups/${GROUP_ID}`, () =>
    JSON.stringify({ displayName: 'x', members: members(14_000) }),
  ),
  scim('an odd id', 'GET', `/Users/${'%F0%9F%8F%B3'.repeat(1_000)}`, () => null),
];

/** A page of the sign-in, which the form belongs to. */
interface OpenForm {
  readonly path: string;
  readonly csrf: string;
}

interface HostileVisit {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** Below the public address. */
  readonly path: (open: OpenForm) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The parameters of the form. */
  readonly form?: (open: OpenForm) => Readonly<Record<string, string>> | string;
}

const FORM_CHARS = 50_000;
const ADDRESS_CHARS = 15_000;

const PIECES: Readonly<Record<string, string>> = {
  'combining marks': '\u0301\u0323',
  'letters that grow': '\u0390\ufb03\u0130',
  backslashes: '\\',
  'at signs': '@',
  points: '.',
  blanks: ' \u00a0',
  brackets: '[{(<',
  quotes: '"\'`',
  'percent signs': '%25',
  plain: 'a',
};
/** Texts that have so many characters in a form or an address. */
const pieces = (chars: number, make: (kind: string, text: string) => HostileVisit): HostileVisit[] =>
  Object.entries(PIECES).map(([kind, piece]) =>
    make(kind, piece.repeat(Math.floor(chars / encodeURIComponent(piece).length))),
  );

const onSignIn = (name: string, answers: Readonly<Record<string, string>>): HostileVisit => ({
  name: `sign-in: ${name}`,
  method: 'POST',
  path: ({ path }) => path,
  form: ({ csrf }) => ({ csrf, ...answers }),
});
const posted = (name: string, path: string, form: Readonly<Record<string, string>> | string): HostileVisit => ({
  name,
  method: 'POST',
  path: () => path,
  form: () => form,
});
const visited = (name: string, path: string, headers: Readonly<Record<string, string>> = {}): HostileVisit => ({
  name,
  method: 'GET',
  path: () => path,
  headers,
});
/** Three parts of a token of which the middle one is long. */
const token = (header: object, chars: number): string =>
  `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${Buffer.from(nested(chars / 3)).toString('base64url')}.AAAA`;

/** Unauthenticated. Long texts stay below the form limit (56 KiB), above which only the length is checked. */
export const HOSTILE_VISITS: readonly HostileVisit[] = [
  ...pieces(24_000, (kind, text) => onSignIn(`${kind} in username and password`, { username: text, password: text })),
  onSignIn('a domain of many labels', { username: `a@${'a.'.repeat(12_000)}example`, password: '' }),
  onSignIn('a tenant of many levels', { username: `${'demo\\'.repeat(5_000)}ada`, password: 'x' }),
  onSignIn('a passkey of many levels', { decision: 'passkey', credential: nested(FORM_CHARS / 2) }),
  onSignIn('a passkey of many members', {
    decision: 'passkey',
    credential: `{${list(3_000, (i) => `"k${i}":1`)}}`,
  }),
  onSignIn('a passkey of long parts', {
    decision: 'passkey',
    credential: JSON.stringify({
      id: 'A'.repeat(10_000),
      rawId: 'A'.repeat(10_000),
      type: 'public-key',
      response: {
        clientDataJSON: 'W'.repeat(10_000),
        authenticatorData: '/'.repeat(5_000),
        signature: '_'.repeat(5_000),
      },
    }),
  }),
  ...['code', 'recovery', 'addApp', 'addPasskey'].map((decision) =>
    onSignIn(`an answer to ${decision}`, {
      decision,
      code: '9'.repeat(20_000),
      recovery: '-'.repeat(20_000),
      setup: 'A'.repeat(5_000),
    }),
  ),
  posted('sign-in: more parameters than allowed', '/password/forgotten', list(7_000, (i) => `a${i}=`).join('&')),
  posted('sign-in: signs of a form', '/password/forgotten', '&=%'.repeat(18_000)),
  posted('sign-in: a form that is too long', '/password/forgotten', `username=${'%41'.repeat(300_000)}`),
  ...pieces(16_000, (kind, text) =>
    posted(`forgotten password: ${kind}`, '/password/forgotten', { username: text, client: text, sign_in: text }),
  ),
  ...pieces(7_000, (kind, text) =>
    visited(
      `forgotten password: ${kind} in an address`,
      `/password/forgotten?${new URLSearchParams({ client: text, sign_in: text })}`,
    ),
  ),
  posted('a password: a link that nobody has', `/password/${'A'.repeat(43)}`, {
    password: '\u0301'.repeat(4_000),
    repeated: '\ufdfa'.repeat(4_000),
  }),
  visited('a password: a long link', `/password/${'A'.repeat(ADDRESS_CHARS)}`),
  visited('an address: a long link', `/account/address/${'%2e'.repeat(5_000)}`),
  ...['state', 'code', 'iss', 'error_description'].map((name) =>
    visited(
      `single sign-on: a long ${name}`,
      `/oauth2/sso/callback/demo/Corp?${new URLSearchParams({ state: 'A'.repeat(43), code: 'x', [name]: repeated('[{"', ADDRESS_CHARS / 5) })}`,
    ),
  ),
  visited('single sign-on: many parameters', `/oauth2/sso/callback/demo/Corp?${'state=a&'.repeat(1_800)}`),
  visited('single sign-on: an odd way', `/oauth2/sso/callback/${'..%2f'.repeat(2_500)}?state=a`),
  ...[
    'scope',
    'claims',
    'prompt',
    'redirect_uri',
    'acr_values',
    'ui_locales',
    'resource',
    'request',
    'id_token_hint',
    'login_hint',
  ].flatMap((name) =>
    [`${name === 'claims' ? '[' : 'a '}`, 'https://a.example/'].map((piece) =>
      visited(
        `authorization: ${JSON.stringify(piece)} in ${name}`,
        `/oauth2/authorize?${new URLSearchParams({ client_id: 'erp-cli', response_type: 'code', [name]: repeated(piece, 4_000) })}`,
      ),
    ),
  ),
  ...['id_token_hint', 'post_logout_redirect_uri', 'logout_hint'].map((name) =>
    visited(
      `sign-out: a long ${name}`,
      `/oauth2/logout?${new URLSearchParams({ [name]: token({ alg: 'RS256', kid: 'x' }, 4_000) })}`,
    ),
  ),
  posted('token: an assertion of many levels', '/oauth2/token', {
    grant_type: 'client_credentials',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: token({ alg: 'RS256', kid: 'x' }, 12_000),
  }),
  ...['code', 'refresh_token', 'device_code', 'code_verifier', 'scope', 'client_id', 'client_secret'].map((name) =>
    posted(`token: a long ${name}`, '/oauth2/token', {
      grant_type: name === 'refresh_token' ? name : 'authorization_code',
      client_id: 'erp-cli',
      [name]: repeated('a.', FORM_CHARS),
    }),
  ),
  ...['introspect', 'revoke', 'par', 'device_authorization'].map((path) =>
    posted(`${path}: long parameters`, `/oauth2/${path}`, {
      client_id: 'erp-cli',
      token: token({ alg: 'none' }, 30_000),
      scope: 'a '.repeat(4_000),
    }),
  ),
  posted('device: a long code', '/device', { user_code: repeated('A-', FORM_CHARS), xsrf: 'x' }),
  visited('userinfo: a token of many levels', '/oauth2/userinfo', {
    authorization: `Bearer ${token({ alg: 'RS256' }, 20_000)}`,
  }),
  visited('cookies', '/account', { cookie: 'erp_browser=; '.repeat(3_000) }),
  visited('cookies of one name', '/oauth2/interaction/a', { cookie: `_interaction=${'a%20'.repeat(7_000)}` }),
  visited('what the browser says that it is', '/account', { 'user-agent': repeated('Mozilla/5.0 (', 40_000) }),
];
