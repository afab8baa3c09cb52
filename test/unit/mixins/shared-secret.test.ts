import assert from 'node:assert/strict';
import { type SecretMetadata, secretMetadata, shareSecret } from '../../../mixins/bus/shared-secret.ts';

describe('processes with secrets', () => {
  const [none, a, b, aWithB, bWithA, cWithA] = [[], ['a'], ['b'], ['a', 'b'], ['b', 'a'], ['c', 'a']].map(
    secretMetadata,
  ) as [SecretMetadata, SecretMetadata, SecretMetadata, SecretMetadata, SecretMetadata, SecretMetadata];
  const meet = (one: SecretMetadata, other: SecretMetadata): boolean => {
    assert.equal(shareSecret(one, other), shareSecret(other, one), 'both sides see the same');
    return shareSecret(one, other);
  };

  it('join those with the same one, and those that replace it', () => {
    for (const [one, other] of [
      [none, none],
      [a, a],
      [a, aWithB],
      [a, bWithA],
      [aWithB, bWithA],
      [b, bWithA],
    ] as const)
      assert.equal(meet(one, other), true);
  });

  it('join no others: with another one, with none, and with two that replace the same one', () => {
    for (const [one, other] of [
      [a, b],
      [a, none],
      [bWithA, none],
      [bWithA, cWithA],
    ] as const)
      assert.equal(meet(one, other), false);
  });

  it('accept consoles and processes without a readable announcement', () => {
    for (const metadata of [undefined, null, {}, { secrets: [] }, { secrets: 'a' }, { secrets: [1] }])
      assert.equal(shareSecret(a, metadata), true);
  });
});
