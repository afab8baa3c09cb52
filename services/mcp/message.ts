/**
 * Bounds of a message before the SDK sees it. The SDK lists everything that is wrong with a message, and repeats its
 * id, name and address: a long message would take long to refuse, and its answer would be longer still.
 */

import { ExactNumber } from '../../lib/json/exact-number.ts';
import { isObject } from '../../lib/json/objects.ts';
import { LIMITS } from '../../lib/limits.ts';

/** Members that answers repeat, by the longest text of each. */
const REPEATED: readonly (readonly [name: string, maxChars: number])[] = [
  ['id', LIMITS.mcp_name_max_chars],
  ['method', LIMITS.mcp_name_max_chars],
  ['name', LIMITS.mcp_name_max_chars],
  ['uri', LIMITS.mcp_uri_max_chars],
];

type Json = Readonly<Record<string, unknown>>;

/** Why a message is refused as a whole; null: it has the size of one that the protocol knows. */
export function tooLong(message: Json): string | null {
  const params = isObject(message['params']) ? message['params'] : {};
  for (const [name, maxChars] of REPEATED) {
    const longest = Math.max(lengthOf(message[name]), lengthOf(params[name]));
    if (longest > maxChars) return `${name} has more than ${maxChars} characters.`;
  }
  const size: Size = { values: 0, chars: 0 };
  if (message['method'] !== 'tools/call') add(size, message);
  else {
    const { arguments: given, ...others } = params;
    add(size, { ...message, params: others });
    // Their content is checked by the tool.
    if (isObject(given)) for (const name of Object.keys(given)) add(size, name);
  }
  if (size.values > LIMITS.mcp_values_max) return `${BESIDES} has more than ${LIMITS.mcp_values_max} values.`;
  if (size.chars > LIMITS.mcp_text_max_chars)
    return `${BESIDES} has more than ${LIMITS.mcp_text_max_chars} characters.`;
  return null;
}

const BESIDES = 'What the message has besides the arguments of a tool';

interface Size {
  values: number;
  chars: number;
}

/** Stops where there are too many values. */
function add(size: Size, value: unknown): void {
  if (++size.values > LIMITS.mcp_values_max) return;
  if (typeof value === 'string') size.chars += value.length;
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return;
  for (const [name, inner] of Object.entries(value)) {
    size.chars += name.length;
    add(size, inner);
    if (size.values > LIMITS.mcp_values_max) return;
  }
}

const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : 0);
