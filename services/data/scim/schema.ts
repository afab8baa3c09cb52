/**
 * The attributes of users and groups that this endpoint supports, as data: reading, changing and filtering follow it, and
 * it is what /Schemas answers. Source: docs/reference/scim.md.
 */

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const ENTERPRISE_SCHEMA = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

/** One attribute (RFC 7643 section 7). */
export interface Attribute {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'complex' | 'reference' | 'dateTime';
  readonly description: string;
  readonly multiValued?: true;
  readonly required?: true;
  readonly caseExact?: true;
  readonly mutability?: 'readOnly' | 'readWrite' | 'immutable';
  readonly returned?: 'always' | 'default';
  readonly uniqueness?: 'none' | 'server';
  readonly canonicalValues?: readonly string[];
  readonly referenceTypes?: readonly string[];
  readonly subAttributes?: readonly Attribute[];
}

const text = (name: string, description: string, more: Partial<Attribute> = {}): Attribute => ({
  name,
  type: 'string',
  description,
  caseExact: true,
  ...more,
});

const READ_ONLY = { mutability: 'readOnly' } as const;
const reference = (to: readonly string[], description: string): Attribute => ({
  name: '$ref',
  type: 'reference',
  description,
  ...READ_ONLY,
  referenceTypes: to,
});
const primary: Attribute = { name: 'primary', type: 'boolean', description: 'True: there is only this one.' };

export const USER_ATTRIBUTES: readonly Attribute[] = [
  {
    name: 'userName',
    type: 'string',
    description: 'Name to sign in with; unique without regard to case.',
    required: true,
    uniqueness: 'server',
  },
  {
    name: 'name',
    type: 'complex',
    description: 'The name of the user. One text is kept of it.',
    subAttributes: [
      text('formatted', 'The whole name: the same text as displayName.'),
      text('givenName', 'The whole name without its last word.'),
      text('familyName', 'The last word of the whole name.'),
    ],
  },
  text('displayName', 'The name of the user as people read it.'),
  {
    name: 'emails',
    type: 'complex',
    multiValued: true,
    description: 'One address is kept: the primary one of those that are sent, else the first.',
    subAttributes: [
      text('value', 'The address.'),
      text('type', 'Always work.', { canonicalValues: ['work'] }),
      primary,
    ],
  },
  { name: 'active', type: 'boolean', description: 'False: the user cannot sign in, and all connections have ended.' },
  text('locale', 'The language and region, such as de-DE.'),
  text('timezone', 'IANA name, such as Europe/Berlin.'),
  {
    name: 'entitlements',
    type: 'complex',
    multiValued: true,
    description: 'The profile of the user: exactly one.',
    subAttributes: [
      text('value', 'The apiName of the profile.'),
      text('display', 'Its label.', READ_ONLY),
      text('type', 'Always profile.', { canonicalValues: ['profile'] }),
      primary,
    ],
  },
  {
    name: 'roles',
    type: 'complex',
    multiValued: true,
    description: 'The role of the user in the hierarchy: one at most.',
    subAttributes: [
      text('value', 'The apiName of the role.'),
      text('display', 'Its label.', READ_ONLY),
      text('type', 'Always role.', { canonicalValues: ['role'] }),
      primary,
    ],
  },
  {
    name: 'groups',
    type: 'complex',
    multiValued: true,
    ...READ_ONLY,
    description: 'The permission sets of the user. They are changed as members of the groups.',
    subAttributes: [
      text('value', 'The id of the group.', READ_ONLY),
      text('display', 'Its displayName.', READ_ONLY),
      text('type', 'Always direct.', { ...READ_ONLY, canonicalValues: ['direct'] }),
      reference(['Group'], 'The address of the group.'),
    ],
  },
];

export const ENTERPRISE_ATTRIBUTES: readonly Attribute[] = [
  {
    name: 'manager',
    type: 'complex',
    description: 'The manager of the user.',
    subAttributes: [
      text('value', 'The id of the manager.'),
      text('displayName', 'The name of the manager.', READ_ONLY),
      reference(['User'], 'The address of the manager.'),
    ],
  },
];

export const GROUP_ATTRIBUTES: readonly Attribute[] = [
  text('displayName', 'The label of the permission set.', { ...READ_ONLY, required: true }),
  {
    name: 'members',
    type: 'complex',
    multiValued: true,
    description: 'The users to whom the permission set is assigned.',
    subAttributes: [
      text('value', 'The id of the user.', { mutability: 'immutable' }),
      text('display', 'The name of the user.', READ_ONLY),
      text('type', 'Always User.', { mutability: 'immutable', canonicalValues: ['User'] }),
      { ...reference(['User'], 'The address of the user.'), mutability: 'immutable' },
    ],
  },
];

/** Attributes of every resource; they belong to no schema (RFC 7643 section 3.1). */
export const COMMON_ATTRIBUTES: readonly Attribute[] = [
  text('id', 'The id that the platform has given.', READ_ONLY),
  text('externalId', 'The id that this client has given; other clients do not see it.'),
  {
    name: 'meta',
    type: 'complex',
    ...READ_ONLY,
    description: 'About the resource.',
    subAttributes: [
      text('resourceType', 'User or Group.', READ_ONLY),
      { name: 'created', type: 'dateTime', ...READ_ONLY, description: 'When it was created.' },
      { name: 'lastModified', type: 'dateTime', ...READ_ONLY, description: 'When it was last changed.' },
      reference([], 'Its address.'),
      text('version', 'Its entity tag.', READ_ONLY),
    ],
  },
];

/** Parts of attributes that have no place here, in lower case. */
export const IGNORED_PARTS: ReadonlySet<string> = new Set([
  'name.middlename',
  'name.honorificprefix',
  'name.honorificsuffix',
  'emails.display',
  'roles.$ref',
]);

/** Attributes of RFC 7643 that have no place here. What clients send of them is ignored. */
export const IGNORED_ATTRIBUTES: ReadonlySet<string> = new Set(
  [
    'nickName',
    'profileUrl',
    'title',
    'userType',
    'preferredLanguage',
    'password',
    'phoneNumbers',
    'ims',
    'photos',
    'addresses',
    'x509Certificates',
    'employeeNumber',
    'costCenter',
    'organization',
    'division',
    'department',
    'schemas',
  ].map((name) => name.toLowerCase()),
);
