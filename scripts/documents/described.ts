/** The operations of the API description, with the shared parameters put in their places. */
import type { ErrorCode } from '../../lib/errors/catalogue.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface Described {
  readonly operationId: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters: readonly DescribedParameter[];
  readonly requestBody?: { readonly required: boolean; readonly description?: string; readonly content: Contents };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Contents }>>;
  readonly 'x-erp-errors': readonly ErrorCode[];
}

type Contents = Readonly<
  Record<string, { readonly schema: Json; readonly example?: unknown; readonly examples?: Json }>
>;

export interface DescribedParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description: string;
  readonly schema?: Json;
  readonly content?: Contents;
  readonly example?: unknown;
}

interface Reference {
  readonly $ref: string;
}

interface Description {
  readonly components: { readonly parameters: Readonly<Record<string, DescribedParameter>> };
  readonly paths: Readonly<
    Record<
      string,
      Record<string, Omit<Described, 'parameters'> & { parameters?: readonly (DescribedParameter | Reference)[] }>
    >
  >;
}

/** The operations of an OpenAPI description, by `operationId`. */
export function describedOperations(description: Json): ReadonlyMap<string, Described> {
  const { paths, components } = description as unknown as Description;
  const given = (part: DescribedParameter | Reference): DescribedParameter =>
    '$ref' in part ? components.parameters[part.$ref.slice(part.$ref.lastIndexOf('/') + 1)]! : part;
  return new Map(
    Object.values(paths)
      .flatMap((item) => Object.values(item))
      .map((one) => [one.operationId, { ...one, parameters: (one.parameters ?? []).map(given) }] as const),
  );
}
