import assert from 'node:assert/strict';
import { readableLines } from '../../../config/text-log.ts';

const line = (fields: object): string => `${JSON.stringify({ time: 0, node: 'n', mod: 'BROKER', ...fields })}\n`;

describe('the log as text', () => {
  it('has level, message and fields of each entry, and the stack of an error with its causes', () => {
    const err = {
      name: 'Error',
      message: 'a',
      stack: 'Error: a\n    at b (c.ts:1:2)',
      cause: { name: 'E', message: 'd' },
    };
    const text = readableLines(line({ level: 40, msg: 'Slow.', ms: 7 }) + line({ level: 50, msg: 'Failed.', err }));
    assert.match(
      text,
      /^\d\d:\d\d:\d\d WARN Slow\. ms=7\n\d\d:\d\d:\d\d ERROR Failed\.\n {4}Error: a\n {4}at b \(c\.ts:1:2\)\n {4}E: d\n$/,
    );
  });

  it('escapes terminal control sequences', () => {
    const text = readableLines(line({ level: 40, msg: 'x\u001b[2J\ny', path: '\u009b\u202e' }));
    assert.match(text, /WARN x\\u001b\[2J\\u000ay path=\\u009b\\u202e\n$/);
  });
});
