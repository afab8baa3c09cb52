/**
 * The declaration of a service: everything that others need to know of it. Each file contracts/<service>.ts exports one,
 * `SERVICE`, and contracts/services.ts lists them. Start-up, bus policy, database logins, manifests, exports of tenants
 * and consent texts are derived from it. Source: CONTRIBUTING.md, "Add a service".
 */
import type { IdentityScope, Operation, Scope } from '../lib/operation.ts';
import type { GuidanceOf } from './guidance/types.ts';

export interface ServiceDeclaration<Rows extends readonly Operation[] = readonly Operation[]> {
  /** Its purpose, in a sentence or two. */
  readonly purpose: string;
  /** `public`: callers reach it, on PORT. Probes reach every service on HEALTH_PORT. */
  readonly listens: 'public' | 'health';
  /**
   * The gateway is not ready before it has seen the service once: one without which nearly no call succeeds. Without
   * the others their own operations answer 503.
   */
  readonly awaitedByGateway: boolean;
  /** It gets the address of the mail server. */
  readonly sendsMail?: true;
  /** It reads or writes the store of contents, and gets its keys. */
  readonly usesContents?: true;
  readonly kubernetes: {
    readonly replicas: { readonly min: number; readonly max: number };
    /** Of a pod to the database (DATABASE_POOL_SIZE). All pods at their maximum fit into CONNECTIONS_MAX. */
    readonly connections: number;
    readonly requests: { readonly cpu: string; readonly memory: string };
    readonly limits: { readonly cpu: string; readonly memory: string };
  };
  /** Rights of its login in the database; absent: it asks whether the database answers, and uses two connections. */
  readonly database?: DatabaseRights;
  /** Rows of its public operations. */
  readonly operations: Rows;
  /** For assistants and developers. It is published with the documents; an operation without it does not compile. */
  readonly guidance: GuidanceOf<Rows>;
  /** Actions of other services that it calls, besides public operations, which the gateway calls for users. */
  readonly calls: readonly string[];
  /**
   * Those of them that it calls with the context of a user whose request it once got, and the milliseconds for which such
   * a context is valid: the time limit of the call.
   */
  readonly actsForUsers?: Readonly<Record<string, number>>;
  /** Its internal actions that operators may call from the console. */
  readonly forOperators?: readonly string[];
  /**
   * Its internal actions that only read, or change something under the key of the request: a call may be repeated on
   * another process when its outcome is unknown.
   */
  readonly repeatable?: readonly string[];
  readonly emits?: readonly string[];
  readonly hears?: readonly string[];
  /** How the consent page names the scopes of its operations. */
  readonly consent?: { readonly [S in Scope | IdentityScope]?: ConsentText };
  /** Which of its tables travel with an exported tenant. A test compares the lists with the tables that there are. */
  readonly moving?: MovingTables;
}

interface DatabaseRights {
  /** Roles of tenants that it may enter: the one of their records, or also the owner, which changes their tables. */
  readonly tenants?: 'records' | 'owner';
  /** It works on job queues. */
  readonly jobs?: true;
  /** Schemas whose tables it uses, besides the one of its name. */
  readonly schemas?: readonly string[];
  /** Functions of the owner that the login may call, for work that belongs to no tenant. */
  readonly routines?: readonly string[];
  /** Functions of the owner that its role `svc_<service>` may call: its only access to tables of other services. */
  readonly roleRoutines?: readonly string[];
}

export type ConsentArea =
  | 'records'
  | 'dashboards'
  | 'agents'
  | 'configuration'
  | 'users'
  | 'audit'
  | 'events'
  | 'calendar'
  | 'you'
  | 'away'
  | 'other';

export interface ConsentText {
  readonly area: ConsentArea;
  /** In plain words, for the person who is asked. */
  readonly text: string;
  /** The same for tokens of assistants, where they allow less. */
  readonly forAssistants?: string;
}

interface MovingTables {
  /** In the order in which they travel. */
  readonly parts: readonly MovedTable[];
  /** Tables that are written otherwise: from the head, the files or the records. */
  readonly made?: readonly string[];
  /** Tables of which nothing is moved. Source: docs/reference/moving-tenants.md#what-is-in-the-file. */
  readonly leftBehind?: readonly string[];
}

export interface MovedTable {
  /** In the file. */
  readonly name: string;
  /** In the schema of the tenant, or with the name of a service in front. */
  readonly table: string;
  /** `trail`: what happened; `setup`: also in a copy without records; `records`: in a copy with records. */
  readonly group: 'trail' | 'setup' | 'records';
  /** Columns that the database gives anew. */
  readonly omit?: readonly string[];
  /** SQL over the rows `t` that are moved; {objects} is the list of the objects of the configuration. */
  readonly where?: string;
  readonly order?: string;
  /** SQL over the row `r` of the file, by column: what is stored instead. */
  readonly stored?: Readonly<Record<string, string>>;
  /** There is one row already, in whose place it comes. */
  readonly replaces?: true;
  /** Hashes over rows that name users. */
  readonly sealed?: true;
  /** Refers to what auth knows of users. */
  readonly ofCredentials?: true;
}
