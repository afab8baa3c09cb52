/** The build's look at known vulnerabilities of what is shipped. */
import assert from 'node:assert/strict';
import { readAudit } from '../../../scripts/advisories.ts';

describe('known vulnerabilities of dependencies', () => {
  it('are listed once per advisory, not once per affected package', () => {
    const report = {
      vulnerabilities: {
        leftish: {
          name: 'leftish',
          severity: 'high',
          range: '<1.2.3',
          via: [{ title: 'Runs what it is given', url: 'https://advisories.example/1' }],
        },
        outer: { name: 'outer', severity: 'high', range: '*', via: ['leftish'] },
      },
    };
    assert.deepEqual(readAudit(JSON.stringify(report)), {
      lines: ['leftish <1.2.3: high: Runs what it is given (https://advisories.example/1)'],
    });
  });

  it('are empty when the report has none', () => {
    assert.deepEqual(readAudit('{"vulnerabilities":{}}'), { lines: [] });
  });

  it('are unknown when the registry does not answer', () => {
    assert.equal(readAudit('{"message":"405 Method Not Allowed","error":{"summary":""}}').lines, null);
    assert.equal(readAudit('').lines, null);
  });
});
