/** The endpoint's description of itself (RFC 7644 section 4, RFC 7643 sections 5 to 7). */

import { SCIM_PREFIX } from '../../../contracts/scim.ts';
import { documentsUrl } from '../../../lib/addresses.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { addressOf, type Json } from './messages.ts';
import {
  type Attribute,
  ENTERPRISE_ATTRIBUTES,
  ENTERPRISE_SCHEMA,
  GROUP_ATTRIBUTES,
  GROUP_SCHEMA,
  USER_ATTRIBUTES,
  USER_SCHEMA,
} from './schema.ts';

export const providerConfig = (baseUrl: string): Json => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  documentationUri: `${documentsUrl(baseUrl)}/reference/scim.md`,
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: LIMITS.take_max },
  changePassword: { supported: false },
  sort: { supported: true },
  etag: { supported: true },
  authenticationSchemes: [
    {
      type: 'oauthbearertoken',
      name: 'OAuth 2.0 bearer token',
      description: 'An access token with the scope users:manage, of a user who has the permission manageUsers.',
      specUri: 'https://www.rfc-editor.org/info/rfc6750',
      primary: true,
    },
  ],
  meta: { resourceType: 'ServiceProviderConfig', location: `${baseUrl}${SCIM_PREFIX}/ServiceProviderConfig` },
});

export const resourceTypes = (baseUrl: string): readonly Json[] => [
  resourceType(baseUrl, 'User', '/Users', 'A user of the tenant.', USER_SCHEMA, [
    { schema: ENTERPRISE_SCHEMA, required: false },
  ]),
  resourceType(baseUrl, 'Group', '/Groups', 'A permission set, with the users who have it.', GROUP_SCHEMA, []),
];

const resourceType = (
  baseUrl: string,
  id: string,
  endpoint: string,
  description: string,
  schema: string,
  schemaExtensions: readonly Json[],
): Json => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
  id,
  name: id,
  endpoint,
  description,
  schema,
  ...(schemaExtensions.length > 0 ? { schemaExtensions } : {}),
  meta: { resourceType: 'ResourceType', location: addressOf(baseUrl, 'ResourceTypes', id) },
});

export const schemas = (baseUrl: string): readonly Json[] => [
  schema(baseUrl, USER_SCHEMA, 'User', 'A user of the tenant.', USER_ATTRIBUTES),
  schema(baseUrl, ENTERPRISE_SCHEMA, 'EnterpriseUser', 'A user of a company.', ENTERPRISE_ATTRIBUTES),
  schema(baseUrl, GROUP_SCHEMA, 'Group', 'A permission set, with the users who have it.', GROUP_ATTRIBUTES),
];

const schema = (
  baseUrl: string,
  id: string,
  name: string,
  description: string,
  attributes: readonly Attribute[],
): Json => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
  id,
  name,
  description,
  attributes: attributes.map(described),
  meta: { resourceType: 'Schema', location: addressOf(baseUrl, 'Schemas', id) },
});

const described = ({
  multiValued,
  required,
  caseExact,
  mutability = 'readWrite',
  returned = 'default',
  uniqueness = 'none',
  subAttributes,
  ...attribute
}: Attribute): Json => ({
  ...attribute,
  multiValued: multiValued ?? false,
  required: required ?? false,
  caseExact: caseExact ?? false,
  mutability,
  returned,
  uniqueness,
  ...(subAttributes ? { subAttributes: subAttributes.map(described) } : {}),
});
