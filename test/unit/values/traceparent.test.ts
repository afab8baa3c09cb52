import assert from 'node:assert/strict';
import { formatTraceparent, parseTraceparent, traceparentOf } from '../../../lib/values/traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const VALID = `00-${TRACE}-${SPAN}-01`;

describe('a traceparent', () => {
  it('is read and written', () => {
    assert.equal(traceparentOf(VALID), VALID);
    const parsed = parseTraceparent(VALID);
    assert.deepEqual(parsed, { traceId: TRACE, spanId: SPAN, flags: 1 });
    assert.equal(formatTraceparent(parsed), VALID);
  });

  it('of a later version is read as far as it is known', () => {
    assert.equal(traceparentOf(`cc-${TRACE}-${SPAN}-01`), VALID);
    assert.equal(traceparentOf(`cc-${TRACE}-${SPAN}-01-what-comes`), VALID);
  });

  for (const header of [
    undefined,
    ['00'],
    '',
    VALID.slice(1),
    `${VALID}-00`,
    `${VALID}, ${VALID}`,
    `cc-${TRACE}-${SPAN}-01.`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    VALID.toUpperCase(),
    `00-${TRACE}-${SPAN}-0"`,
  ])
    it(`is not ${JSON.stringify(header)}`, () => assert.equal(traceparentOf(header), null));
});
