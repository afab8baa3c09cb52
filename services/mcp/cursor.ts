/** Position in a long answer. A cursor is bound to its question: with any other it is refused. */
import { hash } from 'node:crypto';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';

export interface Position {
  /** Entries before the page. */
  readonly entry: number;
  /** Offset at which the page begins: characters of a file, bytes of a text. */
  readonly offset: number;
}

/** By which a cursor knows the question and the answer that it goes on with. */
export const markOf = (question: string | Buffer): string => hash('sha256', question, 'base64url').slice(0, 16);

export const cursorOf = ({ entry, offset }: Position, mark: string): string =>
  Buffer.from(`${entry}.${offset}.${mark}`).toString('base64url');

/** The position of a cursor. Throws CURSOR_INVALID, and CURSOR_QUERY_MISMATCH for a cursor of another question. */
export function positionOf(cursor: string | undefined, mark: string): Position {
  if (cursor === undefined) return { entry: 0, offset: 0 };
  const [, entry, offset, known] = /^(\d{1,8})\.(\d{1,8})\.([\w-]{16})$/.exec(decoded(cursor)) ?? [];
  if (known === undefined)
    throw refused('CURSOR_INVALID', 'cursor is not one of an earlier answer: begin without a cursor.');
  if (known !== mark)
    throw refused('CURSOR_QUERY_MISMATCH', 'The question or its answer has changed: begin without a cursor.');
  return { entry: Number(entry), offset: Number(offset) };
}

const decoded = (cursor: string): string => Buffer.from(cursor.slice(0, 100), 'base64url').toString();

const refused = (code: 'CURSOR_INVALID' | 'CURSOR_QUERY_MISMATCH', message: string): PlatformError =>
  new PlatformError(code, message, { errors: [violation('/cursor', code, message)] });

interface Piece {
  readonly text: string;
  readonly isWhole: boolean;
  /** null: this was the last piece. */
  readonly nextCursor: string | null;
}

/** The piece of a text after the cursor. Throws as positionOf. */
export function pieceOf(text: Buffer, cursor: string | undefined, maxBytes: number): Piece {
  const mark = markOf(text);
  const { offset: from } = positionOf(cursor, mark);
  const to = endOfCharacter(text, from + maxBytes);
  const nextCursor = to < text.length ? cursorOf({ entry: 0, offset: to }, mark) : null;
  return { text: text.subarray(from, to).toString(), isWhole: from === 0 && nextCursor === null, nextCursor };
}

/** No piece ends within a character of UTF-8. */
function endOfCharacter(text: Buffer, at: number): number {
  let end = Math.min(at, text.length);
  while (end < text.length && ((text[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}
