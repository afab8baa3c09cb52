/**
 * A tenant's configuration at one metadata version, compiled by the metadata service into immutable plain data.
 * Everything that reads or writes records decides by it. It is never edited, only superseded by a higher version.
 * Physical names: table = quoted object apiName, column = quoted field apiName, schema = tenantSchema(tenantId).
 */
import type { FieldTypeName } from './field-types/registry.ts';
import type { FieldAttributes } from './field-types/types.ts';

export type { PicklistValue } from './field-types/types.ts';
export type { FieldTypeName };

/**
 * Types of components and where their files stand, in the order in which they build on each other. `{object}` and
 * `{apiName}` stand for names. Each is a kind of the metadata service.
 */
export const COMPONENT_PATHS = {
  TenantSettings: 'settings/{apiName}.yaml',
  ValueSet: 'valueSets/{apiName}.yaml',
  CustomObject: 'objects/{apiName}/object.yaml',
  CustomField: 'objects/{object}/fields/{apiName}.yaml',
  RecordType: 'objects/{object}/recordTypes/{apiName}.yaml',
  ValidationRule: 'objects/{object}/validationRules/{apiName}.yaml',
  DuplicateRule: 'objects/{object}/duplicateRules/{apiName}.yaml',
  SharingRule: 'objects/{object}/sharingRules/{apiName}.yaml',
  NotificationTemplate: 'objects/{object}/notificationTemplates/{apiName}.yaml',
  StateModel: 'objects/{object}/stateModels/{apiName}.yaml',
  CustomAction: 'objects/{object}/actions/{apiName}.yaml',
  Role: 'roles/{apiName}.yaml',
  Group: 'groups/{apiName}.yaml',
  Profile: 'profiles/{apiName}.yaml',
  PermissionSet: 'permissionSets/{apiName}.yaml',
  ExternalClient: 'externalClients/{apiName}.yaml',
  IdentityProvider: 'identityProviders/{apiName}.yaml',
  Dashboard: 'dashboards/{apiName}.yaml',
  AgentPolicy: 'agentPolicies/{apiName}.yaml',
  Layout: 'objects/{object}/layouts/{apiName}.yaml',
  ListView: 'objects/{object}/listViews/{apiName}.yaml',
  Translation: 'translations/{apiName}.yaml',
} as const;

export type ComponentTypeName = keyof typeof COMPONENT_PATHS;

export const COMPONENT_TYPES: readonly string[] = Object.keys(COMPONENT_PATHS);

/** A formula with everything that it takes to compute it, wherever its field is named. */
export interface FormulaMeta {
  readonly expression: string;
  readonly resultType: FieldTypeName;
  /** Digits of a decimal result; null for other types. */
  readonly precision: number | null;
  readonly scale: number | null;
  /** Most characters of a text; null for other types. */
  readonly length: number | null;
  /** The tenant's: where `today` is a day. */
  readonly timezone: string;
  /** The fields of the record that it reads, by apiName. */
  readonly reads: Readonly<Record<string, FormulaRead>>;
}

interface FormulaRead {
  /** Type of its values: of a calculated field, that of its result. */
  readonly fieldType: FieldTypeName;
  readonly length: number | null;
  /** Of a formula field, its formula. */
  readonly formula: FormulaMeta | null;
}

export interface FieldMeta extends FieldAttributes {
  readonly fieldType: FieldTypeName;
  readonly label: string;
  readonly description: string | null;
  readonly helpText: string | null;
  /** Defined by the tenant (`__c`), not shipped. */
  readonly custom: boolean;
  /**
   * Kept by the platform: id, createdAt, createdById, updatedAt, updatedById, recordVersion, ownerId,
   * recordTypeApiName.
   */
  readonly system: boolean;
  readonly required: boolean;
  readonly unique: boolean;
  readonly externalId: boolean;
  readonly caseSensitive: boolean;
  readonly defaultValue: unknown;
  readonly controllingField: string | null;
  /** Of a picklist whose values come from a ValueSet. */
  readonly valueSet?: string;
  readonly referenceTo: readonly string[];
  readonly relationshipName: string | null;
  readonly onDelete: 'setNull' | 'restrict' | 'cascade' | null;
  /** currency: apiName of the sibling field that holds the ISO 4217 code. */
  readonly currencyField: string | null;
  readonly formula: FormulaMeta | null;
  readonly rollup: {
    readonly childObject: string;
    readonly referenceField: string;
    readonly function: 'count' | 'sum' | 'min' | 'max' | 'avg';
    readonly field: string | null;
    readonly criteria: string | null;
    /** Type of its values: integer, decimal, currency, percent, date or dateTime. */
    readonly resultType: FieldTypeName;
    /** Stored fields of the child whose change can change it, the reference among them. */
    readonly reads: readonly string[];
    /** Formulas of the child that it is over or that its criteria ask; absent: none. */
    readonly formulas?: readonly string[];
    /** The children are deleted along with the record. */
    readonly cascades: boolean;
  } | null;
  readonly stateField: boolean;
  readonly dataClassification: 'public' | 'internal' | 'confidential' | 'restricted' | null;
  readonly semantics: string | null;
  readonly deprecated: boolean;
  readonly example: unknown;
}

export interface ChildRelationship {
  readonly relationshipName: string;
  readonly objectApiName: string;
  readonly field: string;
  readonly onDelete: 'setNull' | 'restrict' | 'cascade' | null;
}

/** A record for which the condition is true is refused. */
export interface ValidationRuleMeta {
  readonly apiName: string;
  readonly active: boolean;
  /** An expression over the object's fields, checked when it was deployed. */
  readonly condition: string;
  /** The field that the error points to; null: the record. */
  readonly errorField: string | null;
  readonly message: string;
}

/** Users, roles (with those above them) or groups that a rule speaks of; exactly one of the two is named. */
export interface SharingPrincipal {
  readonly role?: string;
  readonly group?: string;
}

/** Opens records of an object to users who would not see them otherwise; rules only ever add. */
export interface SharingRuleMeta {
  readonly apiName: string;
  readonly kind: 'owner' | 'criteria' | 'reference';
  /** owner: whose records; null for the other kinds. */
  readonly from: SharingPrincipal | null;
  /** criteria: an expression over the record, checked when it was deployed; null for the other kinds. */
  readonly criteria: string | null;
  /** reference: the field that names the user, or a record whose owner is the user; absent for the other kinds. */
  readonly through?: string;
  /** Empty for reference. */
  readonly to: SharingPrincipal;
  readonly access: 'read' | 'readWrite';
}

/** A further write in the transaction of a transition or action. Its expressions read the record and `input`. */
export type EffectMeta =
  /** Expressions by field. */
  | { readonly verb: 'updateFields'; readonly fields: Readonly<Record<string, string>> }
  | { readonly verb: 'createRecord'; readonly object: string; readonly fields: Readonly<Record<string, string>> }
  | {
      readonly verb: 'sendNotification';
      readonly type: string;
      /** `owner`, `actor`, or a field that refers to a user. */
      readonly to: string;
      /** Name of a template of the object; absent: none. */
      readonly template?: string;
    }
  | { readonly verb: 'emitEvent'; readonly type: string; readonly data: Readonly<Record<string, string>> };

/** Common to transitions and actions. */
export interface TransitionOrActionMeta {
  readonly key: string;
  readonly label: string;
  readonly description: string | null;
  /** An expression that must be true; null: none. */
  readonly guard: string | null;
  /** The message when the guard is not true. */
  readonly guardMessage: string | null;
  /** `<Object>.<key>` among the actions of a profile or permission set; null: every user who may edit the record. */
  readonly permission: string | null;
  readonly risk: 'low' | 'medium' | 'high';
  readonly requiresComment: boolean;
  /** JSON Schema 2020-12 of the input; null: the act has no input. */
  readonly input: { readonly [keyword: string]: unknown } | null;
  readonly effects: readonly EffectMeta[];
}

interface TransitionMeta extends TransitionOrActionMeta {
  readonly from: readonly string[];
  readonly to: string;
}

/** The life of a record as the values of one picklist and the ways between them. */
export interface StateModelMeta {
  readonly apiName: string;
  readonly field: string;
  readonly initial: string;
  /** Updates may change the field as well, not only transitions. */
  readonly allowDirectEdit: boolean;
  /** In the order of the file. */
  readonly transitions: readonly TransitionMeta[];
}

export type MatchMethod = 'exact' | 'normalized' | 'fuzzy';

/** Records that match by its items are reported before another of them is stored. */
export interface DuplicateRuleMeta {
  readonly apiName: string;
  readonly label: string;
  readonly active: boolean;
  readonly action: 'block' | 'confirm';
  /** visible: only records that the caller can read count; all: hidden ones as well, which are not named. */
  readonly scope: 'visible' | 'all';
  readonly revealHiddenCount: boolean;
  /** Least weighted mean of the similarities, in (0, 1]. */
  readonly threshold: number;
  readonly match: readonly { readonly field: string; readonly method: MatchMethod; readonly weight: number }[];
}

/** A template says what notifications of transitions and actions say. */
export interface NotificationTemplateMeta {
  /** By BCP 47 tag; with placeholders (lib/notification-template.ts). */
  readonly texts: Readonly<Record<string, { readonly title: string; readonly body: string }>>;
}

export interface RecordTypeMeta {
  readonly apiName: string;
  readonly label: string;
  readonly active: boolean;
  /** Given to new records that do not say their type; one active type at most. */
  readonly default: boolean;
  /** By apiName of a picklist: the values that it takes in records of this type. */
  readonly picklistValues: Readonly<Record<string, readonly string[]>>;
}

/** Layout of a record's screen: fields in sections of columns, and lists of the records that refer to it. */
export interface LayoutMeta {
  readonly apiName: string;
  readonly label: string;
  readonly sections: readonly { readonly label: string; readonly columns: readonly (readonly string[])[] }[];
  readonly relatedLists: readonly {
    readonly relationshipName: string;
    /** null: the plural of the children. */
    readonly label: string | null;
    /** Fields of the children. */
    readonly columns: readonly string[];
  }[];
  /** For whom, and for which records; empty: wherever no other layout of the object applies. */
  readonly assignments: readonly { readonly profile: string | null; readonly recordType: string | null }[];
}

/** A list of records that has a name. */
export interface ListViewMeta {
  readonly apiName: string;
  readonly label: string;
  readonly columns: readonly string[];
  /** In the form that lists of records take; null: all records. */
  readonly filters: { readonly logic: 'and' | 'or'; readonly conditions: readonly object[] } | null;
  readonly sort: readonly { readonly id: string; readonly desc: boolean }[];
  /** Profiles and roles that are offered it; both empty: every user. */
  readonly sharedWith: { readonly roles: readonly string[]; readonly groups: readonly string[] };
}

/** Components that only screens need; kept apart from the objects because they decide nothing about records. */
interface ScreensMeta {
  /** By apiName. */
  readonly layouts: readonly LayoutMeta[];
  /** By apiName. */
  readonly listViews: readonly ListViewMeta[];
}

export type SharingDefault = 'private' | 'read' | 'readWrite' | 'controlledByParent';

export interface ObjectMeta {
  readonly apiName: string;
  readonly label: string;
  readonly labelPlural: string;
  readonly description: string | null;
  readonly custom: boolean;
  /** `api.published` of the component. */
  readonly published: boolean;
  readonly sharingDefault: SharingDefault;
  readonly features: {
    readonly history: boolean;
    readonly search: boolean;
    readonly duplicates: boolean;
    readonly events: boolean;
  };
  /** Always `name`: text or autoNumber. */
  readonly nameField: string;
  readonly defaultSearchFields: readonly string[];
  /**
   * In the order in which records are answered: system fields, name, then the rest by apiName. Includes system fields.
   */
  readonly fields: Readonly<Record<string, FieldMeta>>;
  readonly childRelationships: readonly ChildRelationship[];
  /** By apiName. */
  readonly validationRules: readonly ValidationRuleMeta[];
  /** By apiName. */
  readonly duplicateRules: readonly DuplicateRuleMeta[];
  /** By apiName. */
  readonly sharingRules: readonly SharingRuleMeta[];
  readonly stateModel: StateModelMeta | null;
  /** By apiName. */
  readonly recordTypes: readonly RecordTypeMeta[];
  /** Custom actions by apiName, the active ones. */
  readonly actions: readonly TransitionOrActionMeta[];
}

export interface ObjectPermission {
  readonly create: boolean;
  readonly read: boolean;
  readonly update: boolean;
  readonly delete: boolean;
  readonly viewAll: boolean;
  readonly modifyAll: boolean;
}

export const SYSTEM_PERMISSIONS = [
  'apiEnabled',
  'metadataRead',
  'metadataManage',
  'manageClients',
  'manageUsers',
  'manageAccess',
  'approveAgentActions',
  'sendNotifications',
  'viewAudit',
  'modifyAllData',
  'viewAllData',
] as const;

export type SystemPermission = (typeof SYSTEM_PERMISSIONS)[number];

/** A profile or a permission set. Permissions of a user: the union of one profile and any number of sets. */
export interface PermissionBundle {
  readonly apiName: string;
  readonly label: string;
  readonly system: readonly SystemPermission[];
  readonly objects: Readonly<Record<string, ObjectPermission>>;
  /** By `<Object>.<field>`. */
  readonly fields: Readonly<Record<string, { readonly read: boolean; readonly edit: boolean }>>;
  /** `<Object>.<transitionKey>`. */
  readonly actions: readonly string[];
}

export interface RoleMeta {
  readonly apiName: string;
  readonly label: string;
  readonly parent: string | null;
}

/** Members of a role are also the users of every role above it; members of a group in it are members of this one. */
export interface GroupMeta {
  readonly apiName: string;
  readonly label: string;
  readonly members: {
    readonly roles: readonly string[];
    readonly groups: readonly string[];
    /** Usernames; an unknown one has no effect. */
    readonly users: readonly string[];
  };
}

/** Audiences of tokens: the API, or the endpoint for assistants. */
export const TOKEN_RESOURCES = ['api', 'mcp'] as const;

export type TokenResource = (typeof TOKEN_RESOURCES)[number];

export interface ExternalClientMeta {
  readonly apiName: string;
  /** `<tenantKey>-<apiName>`, unique over all tenants; of a client with a metadata document its address. */
  readonly clientId: string;
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly scopes: readonly string[];
  readonly grantTypes: readonly string[];
  readonly confidential: boolean;
  readonly agent: boolean;
  readonly active: boolean;
  readonly ipRanges: readonly string[];
  /** Browser origins allowed by CORS. */
  readonly origins: readonly string[];
  readonly accessTokenSeconds: number | null;
  readonly rateLimits: RateLimitOverrides;
  /** Username whose rights a client_credentials token has; null: the grant is refused. */
  readonly integrationUser: string | null;
  /** Public keys for private_key_jwt (RFC 7517). */
  readonly jwks?: { readonly keys: readonly Record<string, unknown>[] };
  /** URL at which the client publishes its redirect addresses (OAuth Client ID Metadata Document); other tenants may name it too. */
  readonly metadataDocument?: string;
  /** Audiences of its tokens; absent: see resourcesOf. */
  readonly resources?: readonly TokenResource[];
}

/** Audiences of a client's tokens. A client that describes itself is an assistant unless the tenant says otherwise. */
export const resourcesOf = ({
  resources,
  metadataDocument,
}: Pick<ExternalClientMeta, 'resources' | 'metadataDocument'>): readonly TokenResource[] =>
  resources ?? (metadataDocument === undefined ? TOKEN_RESOURCES : ['mcp']);

/** An OpenID provider at which users of the tenant sign in. Its secret is kept by auth. */
export interface IdentityProviderMeta {
  readonly apiName: string;
  readonly label: string;
  readonly active: boolean;
  readonly issuer: string;
  readonly clientId: string;
  /** Mail domains of the users that it speaks for; it counts for those that are verified for the tenant. */
  readonly domains: readonly string[];
  /** The claim that is the username of a user who signs in with it for the first time. */
  readonly usernameClaim: string;
  /** Defaults for users created at sign-in; null: no user is created. */
  readonly createUsers: { readonly profileApiName: string; readonly roleApiName: string | null } | null;
  /** Users of the domains may also sign in with a password. */
  readonly passwordSignIn: boolean;
}

/** Approver of an agent's request; exactly one property is set. */
export interface ApproverMeta {
  /** Holders of the role and of the roles above it. */
  readonly role?: string;
  readonly group?: string;
  /** Id of a user. */
  readonly user?: string;
  /** The manager of the user in whose name the agent acts. */
  readonly manager?: true;
}

type AgentDecision = 'allow' | 'approve' | 'deny';

/** Every given property must match; an absent one matches everything. */
export interface AgentRuleMeta {
  /** Ids of operations, or beginnings that end in `.*`; empty: all. */
  readonly operationIds: readonly string[];
  readonly risk: 'low' | 'medium' | 'high' | null;
  /** Empty: all, and operations on no object. */
  readonly objects: readonly string[];
  readonly decision: AgentDecision;
  /** Empty: every user who may approve actions of agents. */
  readonly approvers: readonly ApproverMeta[];
  readonly requiredApprovals: number;
  readonly expiresInSeconds: number | null;
  readonly escalateAfterSeconds: number | null;
  readonly escalateTo: readonly ApproverMeta[];
}

/** Operations that agents may run, and those that wait for approval. The first matching rule decides. */
export interface AgentPolicyMeta {
  readonly apiName: string;
  /** apiNames of external clients, `erp-cli`, or `*`. */
  readonly clients: readonly string[];
  readonly rules: readonly AgentRuleMeta[];
  /**
   * The most that a run can ask for, and that all runs of a client and user may take in 24 hours; null: as much as the
   * platform allows.
   */
  readonly budgets: {
    readonly maxCostPerDay: number | null;
    readonly maxMutationsPerDay: number | null;
    readonly maxRecordsPerDay: number | null;
    readonly maxCost: number | null;
    readonly maxMutations: number | null;
    readonly maxRecords: number | null;
  };
  /** The user in whose name the agent acts may decide. */
  readonly allowSelfApproval: boolean;
}

export const RATE_LIMIT_NAMES = ['connection', 'tenant', 'daily', 'concurrency'] as const;

/**
 * Limits that a tenant or a client sets for itself, which can only narrow, or that the operator sets for a tenant;
 * null: none. Units per 60 s, and per 24 h for daily.
 */
export interface RateLimitOverrides {
  readonly connection: number | null;
  readonly tenant: number | null;
  readonly daily: number | null;
  readonly concurrency: number | null;
}

export interface TenantInfo {
  readonly id: string;
  /** Short name chosen at creation, `[a-z][a-z0-9]{1,30}`. */
  readonly key: string;
  readonly name: string;
  readonly region: string;
  readonly edition: string;
  readonly sandbox: boolean;
  readonly locale: string;
  readonly timezone: string;
  readonly currency: string;
  readonly rateLimits: RateLimitOverrides;
}

/** Users who must sign in with a second factor. */
export const SECOND_FACTOR_POLICIES = ['off', 'administrators', 'everyone'] as const;
export type SecondFactorPolicy = (typeof SECOND_FACTOR_POLICIES)[number];

export interface Snapshot {
  readonly tenant: TenantInfo;
  /** metadataVersion; 0 = an empty tenant. */
  readonly version: number;
  readonly objects: Readonly<Record<string, ObjectMeta>>;
  readonly profiles: Readonly<Record<string, PermissionBundle>>;
  readonly permissionSets: Readonly<Record<string, PermissionBundle>>;
  readonly roles: Readonly<Record<string, RoleMeta>>;
  readonly groups: Readonly<Record<string, GroupMeta>>;
  readonly externalClients: Readonly<Record<string, ExternalClientMeta>>;
  readonly identityProviders: Readonly<Record<string, IdentityProviderMeta>>;
  readonly agentPolicies: Readonly<Record<string, AgentPolicyMeta>>;
  /** By object; of those that have any. */
  readonly screens: Readonly<Record<string, ScreensMeta>>;
  /** By `<Object>.<Template>`. */
  readonly notificationTemplates: Readonly<Record<string, NotificationTemplateMeta>>;
  /** Labels by language and by what has them (lib/schema/labels.ts). */
  readonly translations: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** null: as the deployment decides. */
  readonly secondFactor: SecondFactorPolicy | null;
}

/** The parts of a snapshot that components add to, empty. */
export const NO_CONFIGURATION = {
  objects: {},
  profiles: {},
  permissionSets: {},
  roles: {},
  groups: {},
  externalClients: {},
  identityProviders: {},
  agentPolicies: {},
  screens: {},
  notificationTemplates: {},
  translations: {},
  secondFactor: null,
} satisfies Omit<Snapshot, 'tenant' | 'version'>;

/** The parts of an object that its rules and types add to, empty. */
export const NO_RULES = {
  validationRules: [],
  duplicateRules: [],
  sharingRules: [],
  stateModel: null,
  recordTypes: [],
  actions: [],
} satisfies Partial<ObjectMeta>;
