/** A short storm with a random seed, so that every run of the tests sees other faults: see README.md in this folder. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { logs } from '../support/processes.ts';
import { FAULT_KINDS } from './schedule.ts';
import { storm } from './storm.ts';
import { explained } from './violations.ts';

const SECONDS = 45;
const RATE = 8;
/** A restore takes longer than this storm. */
const KINDS = FAULT_KINDS.filter((kind) => kind !== 'restore');
/** Beside the faults: the start with the demo tenants, the last recoveries, and the checks. */
const OTHERWISE_SECONDS = 420;

describe('a storm', function () {
  this.timeout((SECONDS + OTHERWISE_SECONDS) * 1_000);

  it('loses, repeats and half-completes no request', async () => {
    const seed = randomInt(2 ** 31);
    const again = `npm run storm -- --seed ${seed} --minutes ${SECONDS / 60} --rate ${RATE} --faults ${KINDS}`;
    console.log(again);
    const { violations, report } = await storm({
      seed,
      ms: SECONDS * 1_000,
      kinds: KINDS,
      rate: RATE,
      keep: false,
      say: console.log,
    });
    console.log(report);
    assert.equal(
      violations.length,
      0,
      violations[0] &&
        `${explained(violations[0])}\nWhat the processes printed: ${logs}\nThe same faults again: ${again}`,
    );
  });
});
