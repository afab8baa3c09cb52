/** Commands for the operator's console, as documents show them: it can read them, and an operator may send them. */
import assert from 'node:assert/strict';
import { OPERATOR } from '../../config/bus.ts';
import { BUS_POLICY } from '../../contracts/bus.ts';
import { read, repositoryFiles } from '../support/sources.ts';

const commands = repositoryFiles()
  .filter((path) => path.endsWith('.md'))
  .flatMap((path) =>
    [...read(path).matchAll(/(?:^ *(?:erp \$ )?|`)call ((?:agent|auth|data|metadata)\.[\w.]+)(?: ([^`\n]+))?/gm)].map(
      ([text, action, params]) => ({ where: `${path}: ${text}`, action: action!, params }),
    ),
  );

describe('the commands that documents show for the console', () => {
  it('call what an operator may call', () => {
    assert.ok(commands.length > 10, `only ${commands.length} commands were found`);
    assert.deepEqual(
      commands.filter(({ action }) => !BUS_POLICY.mayCall([OPERATOR], action)).map(({ where }) => where),
      [],
    );
  });

  it('have their parameters as one JSON object in single quotes, or the console splits them at the blanks', () => {
    for (const { where, params } of commands) {
      if (params === undefined) continue;
      const [, json] = /^'([^']+)'$/.exec(params) ?? [];
      assert.ok(json, where);
      assert.doesNotThrow(() => assert.equal(typeof JSON.parse(json), 'object'), where);
    }
  });
});
