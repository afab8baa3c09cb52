/** A name as one part of a JSON Pointer (RFC 6901). */
export const pointerPart = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
