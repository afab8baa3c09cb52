/** Conditions on records as data: what a filter and record access say, before they become SQL. */
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
  | { readonly kind: 'search'; readonly fields: readonly FieldMeta[]; readonly tokens: readonly string[] }
  | {
      readonly kind: 'ownedBy';
      readonly userIds: readonly string[];
      /** Whose records they are not, instead. */
      readonly except: boolean;
      /** Users there are in all. */
      readonly among: number;
    }
  /** Records for which an expression of the configuration is true. */
  | {
      readonly kind: 'criteria';
      readonly object: ObjectMeta;
      readonly expression: string;
      /** Zone of the tenant, where moments have their days. */
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
