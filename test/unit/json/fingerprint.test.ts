import assert from 'node:assert/strict';
import { canonicalQuery, type FingerprintParts, fingerprint } from '../../../lib/json/fingerprint.ts';
import { parseJson } from '../../../lib/json/parse.ts';

const parts = (more: Partial<FingerprintParts> = {}): FingerprintParts => ({
  method: 'POST',
  path: '/api/v1/data/Account',
  query: [],
  ifMatch: undefined,
  expectedRevision: undefined,
  duplicateConfirmation: undefined,
  agentRunId: undefined,
  body: { name: 'Acme', amount: 10.5 },
  ...more,
});

describe('request fingerprint', () => {
  it('does not depend on the order of keys or the way numbers are written', () => {
    const one = fingerprint(parts({ body: parseJson('{"name":"Acme","amount":10.50}', 32) }));
    const two = fingerprint(parts({ body: parseJson('{ "amount": 1.05e1, "name": "Acme" }', 32) }));
    assert.equal(one, two);
    assert.match(one, /^[0-9a-f]{64}$/);
  });

  it('does not depend on the order of query parameters', () => {
    assert.equal(
      canonicalQuery([
        ['b', '2'],
        ['a', 'x y'],
      ]),
      'a=x%20y&b=2',
    );
  });

  it('differs when any part differs', () => {
    const all = [
      parts(),
      parts({ method: 'PATCH' }),
      parts({ path: '/api/v1/data/Contact' }),
      parts({ query: [['checkOnly', 'true']] }),
      parts({ ifMatch: '"1"' }),
      parts({ expectedRevision: '1' }),
      parts({ duplicateConfirmation: 'dct_1' }),
      parts({ agentRunId: 'x' }),
      parts({ body: { name: 'Acme', amount: 10.51 } }),
      parts({ body: undefined }),
      parts({ body: Buffer.from('raw') }),
      parts({ body: parseJson('{"amount":12345678901234567.8}', 32) }),
      parts({ body: parseJson('{"amount":12345678901234567.9}', 32) }),
    ].map(fingerprint);
    assert.equal(new Set(all).size, all.length);
  });
});
