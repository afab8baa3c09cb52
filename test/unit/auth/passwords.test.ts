import assert from 'node:assert/strict';
import { hashPassword, passwordProblem, verifyPassword } from '../../../services/auth/passwords.ts';

describe('passwords', () => {
  it('are stored as argon2id, each with its own salt', async () => {
    const [a, b] = await Promise.all([hashPassword('correct horse'), hashPassword('correct horse')]);
    assert.match(a, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    assert.notEqual(a, b);
    assert.equal(await verifyPassword(a, 'correct horse'), true);
    assert.equal(await verifyPassword(a, 'correct horsf'), false);
  });

  it('compare equal in any Unicode normalization', async () => {
    assert.equal(await verifyPassword(await hashPassword('Grüße an alle'), 'Gru\u0308ße an alle'), true);
  });

  for (const [password, refused] of [
    ['123456789', true],
    ['1234567890', false],
    ['aaaaaaaaaaaaaaa', true],
    ['ADA@demo.example', true],
    ['ünïcödé wörd', false],
    [`${'x'.repeat(150)}abcdefg`, false],
    ['abcdefghij'.repeat(20), false],
    [`${'abcdefghij'.repeat(20)}k`, true],
  ] as const)
    it(`${refused ? 'refuse' : 'take'} ${JSON.stringify(password.slice(0, 24))} (${password.length})`, () =>
      assert.equal(passwordProblem(password, 'ada@demo.example') !== null, refused));
});
