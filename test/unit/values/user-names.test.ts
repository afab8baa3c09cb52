/** Which names users can have. Source: docs/reference/records.md#names-of-users. */
import assert from 'node:assert/strict';
import { displayNameProblem, USERNAME_MAX_CHARS, usernameProblem } from '../../../lib/values/user-names.ts';
import { processorMs } from '../../support/processor.ts';

describe('a username', () => {
  it('has letters of any script, and one script in each of its parts', () => {
    for (const name of [
      ...[
        'ada@demo.example',
        'Ada Lovelace',
        'иван@demo.example',
        'νίκος@demo.example',
        '山田太郎',
        'עדה',
        'سارة',
        'जोया',
      ],
      ...[
        'müller',
        'mu\u0308ller',
        'o’brien',
        'a',
        '123',
        'x'.repeat(USERNAME_MAX_CHARS),
        'Ἀθηνᾶ',
        '李-lee',
        'kim김',
        'b+c_d-e.f',
      ],
    ])
      assert.equal(usernameProblem(name), null, name);
  });

  it('has no invisible or confusable characters; the error names the character', () => {
    const refused: [name: string, problem: RegExp][] = [
      ['ad\0a', /U\+0000 at position 3, which cannot be seen/],
      ['ada\n', /U\+000A/],
      ['ad\u200Ba', /U\+200B at position 3/],
      ['\uFEFFada', /U\+FEFF at position 1/],
      ['ad\u00ADa', /U\+00AD/],
      ['ada\u202Eelpmaxe', /U\+202E/],
      ['a\u2066b', /U\+2066/],
      ['a\u200Db', /U\+200D/],
      ['a\u{E0041}b', /U\+E0041/],
      ['a\uFE0F', /U\+FE0F/],
      ['a\u3164', /U\+3164/],
      ['a\uD800', /U\+D800/],
      ['a\uE000', /U\+E000/],
      [' ada', /must not begin with a blank \(U\+0020\)/],
      ['ada ', /must not end with a blank \(U\+0020\)/],
      ['ada\u00A0b', /U\+00A0 at position 4, which looks like a plain blank/],
      ['ad\u0430@demo.example', /mixes scripts: U\+0430 at position 3 is Cyrillic, and letters before it are Latin/],
      ['sсott', /Cyrillic/],
      ['аdmin', /Latin/],
      ['αdmin', /Greek|Latin/],
      ['ada@dеmo.example', /U\+0435/],
      ['x'.repeat(USERNAME_MAX_CHARS + 1), /at most 320 characters/],
      // Longer once it is normalized, and as long as that before.
      ['\u1F82'.repeat(USERNAME_MAX_CHARS + 1), /at most 320/],
    ];
    for (const [name, problem] of refused)
      assert.match(usernameProblem(name) ?? 'accepted', problem, JSON.stringify(name));
  });

  it('is refused with one such character in any context, in linear time', () => {
    const bad = ['\0', '\u200B', '\u202E', '\u2028', '\uFEFF', '\u0085', '\u00A0', '\u3000'];
    for (let round = 0; round < 500; round++) {
      const around = Array.from({ length: round % 60 }, (_, i) => 'abcxyz'[(i * 7 + round) % 6]);
      around.splice((round * 13) % (around.length + 1), 0, bad[round % bad.length]);
      assert.notEqual(usernameProblem(around.join('')), null, JSON.stringify(around.join('')));
    }
    const took = processorMs(() => {
      for (let n = 0; n < 200; n++) usernameProblem('a'.repeat(1_000_000));
      displayNameProblem('а b'.repeat(300_000));
    });
    assert.ok(took < 5_000);
  });
});

describe('display name of a user', () => {
  it('may mix scripts and use joiners, without other invisible characters', () => {
    for (const name of ['Ada Лавлейс', 'می\u200Cخواهم', 'क्\u200Dष', '', ' Ada '])
      assert.equal(displayNameProblem(name), null, name);
    for (const name of ['Ada\u202E', 'A\u200Bda', 'Ada\nAdmin', '\u2066x'])
      assert.match(displayNameProblem(name) ?? '', /U\+[0-9A-F]{4} at position \d+/, JSON.stringify(name));
  });
});
