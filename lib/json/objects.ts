/** True for what JSON calls an object: neither a list nor null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The members of what should be an object; none of anything else. */
export const membersOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});
