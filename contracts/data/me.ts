/** The person behind a token: profile, preferences and permissions. Users are records, so that data answers. */
import { Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, nullable } from '../../lib/operation.ts';
import { FIELD_ERRORS, TRIED } from './mutations.ts';
import { KEY_ERRORS } from './rows.ts';

const uuid = Type.String({ format: 'uuid' });

/** Properties of the user that `GET /identity` and `GET /me` share. */
export const USER_PROPERTIES = {
  id: uuid,
  username: Type.String(),
  displayName: Type.String(),
  email: nullable(Type.String()),
  locale: Type.String({ description: "BCP 47 language tag; the tenant's default when the user has none." }),
  timezone: Type.String({ description: "IANA time zone; the tenant's default when the user has none." }),
  profileApiName: Type.String(),
  roleApiName: nullable(Type.String()),
  active: Type.Boolean(),
  apiEnabled: Type.Boolean({ description: 'The user may use the API.' }),
};

const EMAIL_DIGESTS = ['off', 'daily', 'weekly'] as const;
export type EmailDigest = (typeof EMAIL_DIGESTS)[number];

const PREFERENCES = {
  locale: nullable(Type.String({ maxLength: 35, description: "BCP 47 language tag; null: the tenant's." })),
  timezone: nullable(Type.String({ maxLength: 64, description: "IANA time zone; null: the tenant's." })),
  dateFormat: nullable(
    Type.Enum(['yyyy-MM-dd', 'dd.MM.yyyy', 'dd/MM/yyyy', 'MM/dd/yyyy'] as const, {
      title: 'DateFormat',
      description: 'How applications show dates; null: by the custom of the locale.',
    }),
  ),
  emailDigest: nullable(
    Type.Enum([...EMAIL_DIGESTS], {
      title: 'EmailDigest',
      description:
        'How often notifications come as one mail; null and `off`: mails come soon after what they are about.',
    }),
  ),
};

const Preferences = Type.Object(PREFERENCES, { title: 'Preferences' });

const EXAMPLE_PREFERENCES = {
  locale: 'de-DE',
  timezone: 'Europe/Berlin',
  dateFormat: 'dd.MM.yyyy',
  emailDigest: null,
} as const;

const ETAG = {
  ETag: { description: 'Version of the record of the user, for `If-Match`.', schema: Type.String() },
};

export const ME_OPERATIONS = [
  defineOperation({
    operationId: 'me.profile.get',
    method: 'GET',
    path: '/me',
    tag: 'me',
    summary: 'Read the profile of the caller',
    description: 'The user of the token, with preferences.',
    scopes: ['me:read'],
    response: {
      status: 200,
      description: 'The profile.',
      schema: Type.Object(
        {
          ...USER_PROPERTIES,
          managerId: nullable(uuid),
          avatarFileId: nullable(Type.String({ format: 'uuid', description: 'The file of the picture; null: none.' })),
          preferences: Preferences,
        },
        { title: 'Profile' },
      ),
      headers: ETAG,
      example: {
        id: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
        username: 'sam@demo.example',
        displayName: 'Sam Keller',
        email: 'sam@demo.example',
        locale: 'de-DE',
        timezone: 'Europe/Berlin',
        profileApiName: 'SalesRep',
        roleApiName: 'SalesRep',
        active: true,
        apiEnabled: true,
        managerId: null,
        avatarFileId: null,
        preferences: EXAMPLE_PREFERENCES,
      },
    },
    errors: ['API_ACCESS_DISABLED'],
    action: 'data.me.get',
  }),
  defineOperation({
    ...TRIED,
    operationId: 'me.preferences.update',
    method: 'PATCH',
    path: '/me/preferences',
    tag: 'me',
    summary: 'Change preferences of the caller',
    description: 'Those that the body names. null takes a choice back.',
    scopes: ['me:write'],
    risk: 'low',
    cost: 1,
    precondition: 'ifMatch',
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Partial(Type.Object(PREFERENCES), {
        title: 'PreferencesChange',
        additionalProperties: false,
        minProperties: 1,
      }),
      example: { dateFormat: 'dd.MM.yyyy' },
    },
    response: {
      status: 200,
      description: 'The preferences as they are now.',
      schema: Preferences,
      headers: ETAG,
      example: EXAMPLE_PREFERENCES,
    },
    errors: [...KEY_ERRORS, ...FIELD_ERRORS, 'BODY_PROPERTY_UNKNOWN', 'API_ACCESS_DISABLED'],
    action: 'data.me.updatePreferences',
  }),
  defineOperation({
    operationId: 'me.permissions.get',
    method: 'GET',
    path: '/me/permissions',
    tag: 'me',
    summary: 'Read the permissions of the caller',
    description:
      'By profile and permission sets. What a request may do is bounded by the scopes of its token and the sharing of each record, too.',
    scopes: 'authenticated',
    runs: 'outside',
    queryParameters: [
      {
        name: 'objectApiName',
        description: 'Only this object.',
        schema: Type.String({ minLength: 1, maxLength: 80 }),
        example: 'Account',
      },
    ],
    response: {
      status: 200,
      description: 'Permissions on objects that the caller can see, and those of the system.',
      schema: Type.Object(
        {
          objects: Type.Array(
            Type.Object(
              {
                apiName: Type.String(),
                create: Type.Boolean(),
                read: Type.Boolean(),
                update: Type.Boolean(),
                delete: Type.Boolean(),
                fields: Type.Array(
                  Type.Object(
                    { apiName: Type.String(), read: Type.Boolean(), edit: Type.Boolean() },
                    { title: 'FieldPermission' },
                  ),
                  { description: 'Those that the caller can see.' },
                ),
              },
              { title: 'ObjectPermissions' },
            ),
          ),
          system: Type.Array(Type.String(), { description: 'System permissions.' }),
          actions: Type.Array(Type.String(), { description: 'Actions that the caller may execute.' }),
        },
        { title: 'Permissions' },
      ),
      example: {
        objects: [
          {
            apiName: 'Account',
            create: true,
            read: true,
            update: true,
            delete: false,
            fields: [{ apiName: 'name', read: true, edit: true }],
          },
        ],
        system: ['apiEnabled'],
        actions: [],
      },
    },
    errors: ['OBJECT_NOT_FOUND', 'API_ACCESS_DISABLED'],
    action: 'data.me.permissions',
  }),
] as const;
