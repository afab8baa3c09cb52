/** Components as a tenant has them. A type of component has a schema, and the schema gives its bodies their type. */
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import type { ComponentTypeName } from '../../../lib/schema/snapshot.ts';
import type { YamlValue } from '../../../lib/yaml/parse.ts';

export type Body = { readonly [key: string]: YamlValue };

export interface Component<B extends Body = Body> {
  readonly type: string;
  readonly fullName: string;
  readonly path: string;
  readonly body: B;
  readonly yaml: string;
  /** SHA-256 (hex) of `yaml`. */
  readonly hash: string;
  /** Shipped with the platform; only the platform changes it. */
  readonly system: boolean;
  readonly changedAtVersion: number;
  readonly updatedAt: string;
  readonly updatedById: string | null;
}

/** A tenant's components by `componentKey(type, fullName)`. Read-only; the planner makes new ones. */
export type State = ReadonlyMap<string, Component>;

export const componentKey = (type: string, fullName: string): string => `${type}:${fullName}`;

/** A type of component, and the schema that its bodies have passed. Kinds are such types. */
export interface ComponentType<S extends TObject = TObject> {
  readonly type: ComponentTypeName;
  /** JSON Schema of the file; the order of its properties is the order of the keys. */
  readonly schema: S;
}

export type BodyOf<T extends ComponentType> = Body & Static<T['schema']>;
export type ComponentOf<T extends ComponentType> = Component<BodyOf<T>>;

/** A type of component by the properties of its file, after `type` itself. */
export const componentType = <N extends ComponentTypeName, P extends TProperties>(type: N, properties: P) => ({
  type,
  schema: Type.Object({ type: Type.Literal(type), ...properties }, { additionalProperties: false }),
});

/** Type guard of a component: its body has passed the schema of this type before it was stored. */
export const isOf = <T extends ComponentType>(component: Component, { type }: T): component is ComponentOf<T> =>
  component.type === type;

export function findComponent<T extends ComponentType>(
  state: State,
  type: T,
  fullName: string,
): ComponentOf<T> | undefined {
  const found = state.get(componentKey(type.type, fullName));
  return found && isOf(found, type) ? found : undefined;
}

/** All components of a type. */
export const componentsOf = <T extends ComponentType>(state: State, type: T): ComponentOf<T>[] =>
  [...state.values()].filter((component) => isOf(component, type));

/** The components of a type that belong to objects, by object. */
export const componentsByObject = <T extends ComponentType>(state: State, type: T): Map<string, ComponentOf<T>[]> =>
  Map.groupBy(componentsOf(state, type), ({ body }) => String(body['object']));
