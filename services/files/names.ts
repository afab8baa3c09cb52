/** Names of files in headers. */
import { FileName } from '../../contracts/files.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import { valueProblem } from '../../lib/validation.ts';

const POINTER = 'header:X-File-Name';

/** The name in X-File-Name, which is percent-encoded UTF-8. Throws PARAMETER_INVALID for an invalid name. */
export function nameInHeader(header: string): string {
  const name = decoded(header);
  const problem = name === null ? 'must be percent-encoded UTF-8, such as f%C3%BCr.txt' : valueProblem(FileName, name);
  if (name !== null && problem === null) return name;
  const message = `X-File-Name ${problem}.`;
  throw new PlatformError('PARAMETER_INVALID', message, { errors: [violation(POINTER, 'PARAMETER_INVALID', message)] });
}

/** null: the text is not percent-encoded UTF-8. Bytes beyond ASCII would be read as another encoding, and become other letters. */
function decoded(text: string): string | null {
  if (/[^\x20-\x7e]/.test(text)) return null;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Content-Disposition (RFC 6266): an ASCII name for old clients, and the whole name as RFC 8187 has it. */
export function attachment(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const whole = encodeURIComponent(name).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${whole}`;
}
