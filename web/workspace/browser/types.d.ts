/** Types of the public API that the page reads (docs/reference/records.md, screens.md, transitions.md). */

export interface ObjectSummary {
  apiName: string;
  label: string;
  capabilities: Capabilities;
}

export interface Capabilities {
  creatable: boolean;
  updateable: boolean;
  deletable: boolean;
}

export interface PicklistValue {
  value: string;
  label: string;
  active: boolean;
  isDefault: boolean;
  /** Values of the controlling field; null: any. */
  validFor: string[] | null;
}

export interface Field {
  apiName: string;
  fieldType: string;
  label: string;
  helpText: string | null;
  system: boolean;
  creatable: boolean;
  updateable: boolean;
  required: boolean;
  defaultedOnCreate: boolean;
  length: number | null;
  scale: number | null;
  defaultValue: unknown;
  filterOperators: string[];
  sortable: boolean;
  aggregations: string[];
  picklistValues: PicklistValue[] | null;
  controllingField: string | null;
  referenceTo: string[];
  currencyField: string | null;
  stateField: boolean;
}

export interface Section {
  label: string;
  columns: string[][];
}

export interface RelatedList {
  label: string;
  objectApiName: string;
  field: string;
  columns: string[];
}

export interface Layout {
  default: boolean;
  recordTypes: string[];
  sections: Section[];
  relatedLists: RelatedList[];
}

export interface ListView {
  apiName: string;
  label: string;
  columns: string[];
  filters: Filters | null;
  sort: Sort[];
}

export interface Condition {
  id: string;
  field: string;
  operator: string;
  value?: unknown;
  valueTo?: unknown;
}

export interface Filters {
  logic: 'and' | 'or';
  conditions: Condition[];
}

export interface Sort {
  id: string;
  desc: boolean;
}

export interface Description {
  apiName: string;
  label: string;
  labelPlural: string;
  description: string | null;
  searchable: boolean;
  recordTypes: { apiName: string; label: string; default: boolean; active: boolean }[];
  fields: Field[];
  layouts: Layout[];
  listViews: ListView[];
  capabilities: Capabilities;
}

/** A description with its fields by name. */
export interface ObjectType extends Description {
  byName: ReadonlyMap<string, Field>;
}

export type Values = Record<string, unknown>;

export interface RecordData extends Values {
  id: string;
  _etag?: string;
  _expanded?: Record<string, { id: string; name: string | null } | null>;
}

export interface RecordPage {
  records: RecordData[];
  total: number | null;
  nextCursor: string | null;
}

/** Says what became of a record of a request that writes several. */
export interface WrittenRow {
  index: number;
  errors: { code: string; message: string }[];
}

export interface Transition {
  transitionKey: string;
  label: string;
  description: string | null;
  toState: string | null;
  kind: 'transition' | 'action';
  available: boolean;
  unavailableReasons: { code: string; message: string }[];
  risk: 'low' | 'medium' | 'high';
  requiresComment: boolean;
  input: InputSchema | null;
}

export interface InputSchema {
  properties?: Record<
    string,
    { type?: string; title?: string; description?: string; format?: string; enum?: string[] }
  >;
  required?: string[];
}

export interface HistoryEntry {
  changeId: string;
  at: string;
  actor: { userId: string | null };
  operation: string;
  changes: { field: string; from: unknown; to: unknown }[];
}

export interface DuplicateRule {
  label: string;
  action: 'confirm' | 'block';
  matches: {
    objectApiName: string;
    id: string;
    displayName: string;
    matchedFields: string[];
    record: Values;
  }[];
  hiddenMatchCount: number;
}

/** A control that edits a value. */
export interface Input {
  part: HTMLElement;
  value(): unknown;
  set(value: unknown): void;
  focus(): void;
  /** The value of the controlling field has become another one. */
  control?(value: unknown): void;
}
