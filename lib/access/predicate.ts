/** Conditions on records as data: filters and record access before they become SQL. */
import type { Operator, SqlValue } from '../schema/field-types/types.ts';
import type { FieldMeta, ObjectMeta } from '../schema/snapshot.ts';

/** A condition whose names exist and are readable and whose values have the field's type. */
export type Predicate =
  | { readonly kind: 'and' | 'or'; readonly nodes: readonly Predicate[] }
  | {
      readonly kind: 'compare';
      readonly field: FieldMeta;
      readonly operator: Exclude<Operator, 'in_related'>;
      readonly values: readonly SqlValue[];
    }
  | {
      readonly kind: 'related';
      readonly field: FieldMeta;
      readonly object: ObjectMeta;
      readonly relatedField: FieldMeta;
      readonly node: Predicate | null;
      readonly sharing: Predicate | null;
    }
  /** Asks something of the record that a reference points to. */
  | {
      readonly kind: 'referenced';
      readonly reference: FieldMeta;
      readonly object: ObjectMeta;
      readonly node: Predicate;
      /** True for records without such a record: the reference is empty, or leads to one that does not match. */
      readonly negated: boolean;
      readonly sharing: Predicate | null;
    }
  | { readonly kind: 'search'; readonly fields: readonly FieldMeta[]; readonly tokens: readonly string[] }
  | {
      readonly kind: 'ownedBy';
      readonly userIds: readonly string[];
      /** Records of all other owners instead. */
      readonly except: boolean;
      /** Number of all users. */
      readonly among: number;
    }
  /** Records for which an expression of the configuration is true. */
  | {
      readonly kind: 'criteria';
      readonly object: ObjectMeta;
      readonly expression: string;
      /** Time zone of the tenant, for the day of a point in time. */
      readonly timezone: string;
    }
  /** Records that are shared by hand with the user, one of the roles or one of the groups. */
  | {
      readonly kind: 'shared';
      readonly object: ObjectMeta;
      readonly userId: string;
      readonly roles: readonly string[];
      readonly groups: readonly string[];
      readonly access: readonly ('read' | 'edit')[];
    }
  | { readonly kind: 'false' };
