/** Packets above the message size of NATS travel in parts and arrive as they were. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Joiner, split } from '../../../mixins/bus/parts.ts';

describe('messages in parts', () => {
  it('are reassembled for any size and order of parts', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 2_000 }),
        fc.integer({ min: 25, max: 500 }),
        fc.infiniteStream(fc.nat()),
        (bytes, partMax, order) => {
          const data = Buffer.from(bytes);
          const parts = split(data, partMax);
          for (const part of parts) assert.ok(part.length <= partMax);
          const joiner = new Joiner();
          const shuffled = parts
            .map((part) => ({ part, at: order.next().value as number }))
            .sort((a, b) => a.at - b.at)
            .map(({ part }) => part);
          const answers = shuffled.map((part) => joiner.add(part, 0));
          assert.deepEqual(answers.pop(), data);
          assert.ok(answers.every((answer) => answer === null));
          assert.equal(joiner.size, 0);
        },
      ),
    );
  });

  it('do not mix with parts of other messages', () => {
    const joiner = new Joiner();
    const [first, second] = [randomBytes(300), randomBytes(300)];
    const [a, b] = [split(first, 100), split(second, 100)];
    const answers = a.flatMap((part, i) => [joiner.add(part, 0), joiner.add(b[i]!, 0)]).filter(Boolean);
    assert.deepEqual(answers, [first, second]);
  });

  it('that stay incomplete are dropped', () => {
    const joiner = new Joiner();
    for (let i = 0; i < 1_000; i++) joiner.add(split(randomBytes(200), 100)[0]!, i);
    assert.ok(joiner.size <= 64);
    joiner.add(split(randomBytes(200), 100)[0]!, 10_000_000);
    assert.equal(joiner.size, 1);
  });

  it('leave a small message as it is', () => {
    const small = Buffer.from([0xa1, 0x61, 0x61, 0x01]);
    assert.equal(new Joiner().add(small, 0), small);
  });
});
