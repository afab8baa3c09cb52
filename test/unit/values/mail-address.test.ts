/** Which names of users may stand in mails of the platform. */
import assert from 'node:assert/strict';
import { looksLikeName, looksLikeUsername } from '../../../lib/values/mail-address.ts';
import { assertPrompt } from '../../support/processor.ts';

describe('names in mails', () => {
  it('are names of people in any script', () => {
    for (const name of [
      'Sam Keller',
      'Dr. María de la Cruz Fernández García',
      'O’Neil-Smith, Jr.',
      '山田 太郎',
      'R2-D2',
    ])
      assert.ok(looksLikeName(name), name);
  });

  it('are no messages, links or telephone numbers', () => {
    for (const name of [
      '',
      'Open https://evil.example',
      'evil.example',
      'Call 0900 12345',
      'Call 0-9 0.0 now',
      'You have won!',
      'Dear customer: pay',
      'your account will be closed within the next few days unless you pay',
    ])
      assert.ok(!looksLikeName(name), name);
  });

  it('are usernames where they are a mail address or one word', () => {
    for (const name of ['sam@demo.example', 'm_keller-2', 'jürgen']) assert.ok(looksLikeUsername(name), name);
    for (const name of ['', 'a b', 'evil.example', 'x/y', 'https://evil.example', 'a b@evil.example', 'x'.repeat(65)])
      assert.ok(!looksLikeUsername(name), name);
  });

  it('are checked in linear time', () => {
    for (const text of ['1 '.repeat(40_000), 'a '.repeat(40_000), 'a.'.repeat(40_000), 'w.1:'.repeat(20_000)])
      assertPrompt(text.slice(0, 4), () => looksLikeName(text));
  });
});
