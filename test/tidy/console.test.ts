/** Commands for the operator's console, as documents show them: it can read them, and an operator may send them. */
import assert from 'node:assert/strict';
import { OPERATOR } from '../../config/services.ts';
import { BUS_POLICY } from '../../contracts/bus.ts';
import { describeActions, problemsOf } from '../../scripts/console/call.ts';
import { OPERATOR_HELP } from '../../scripts/console/operator-actions.ts';
import { read, repositoryFiles } from '../support/sources.ts';

const commands = repositoryFiles()
  .filter((path) => path.endsWith('.md'))
  .flatMap((path) =>
    [...read(path).matchAll(/(?:^ *(?:erp \$ )?|`)call ((?:agent|auth|data|metadata)\.[\w.]+)(?: ([^`\n]+))?/gm)].map(
      ([text, action, params]) => ({ where: `${path}: ${text}`, action: action!, params }),
    ),
  );

describe('documented console commands', () => {
  it('call actions available to operators', () => {
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

  it('have parameters of the actions', () => {
    for (const { where, action, params } of commands)
      assert.deepEqual(problemsOf(OPERATOR_HELP.get(action)!, JSON.parse(params?.slice(1, -1) ?? '{}')), [], where);
  });
});

describe('operator actions listed by the console', () => {
  it('are those that an operator may call', () => {
    for (const action of OPERATOR_HELP.keys()) assert.ok(BUS_POLICY.mayCall([OPERATOR], action), action);
  });

  it('have examples that the console accepts', () => {
    for (const [action, help] of OPERATOR_HELP) assert.deepEqual(problemsOf(help, help.example), [], action);
  });

  it('include every action and every parameter', () => {
    const list = describeActions();
    for (const [action, { parameters }] of OPERATOR_HELP) {
      assert.match(list, new RegExp(`^  ${action} +\\S`, 'm'));
      for (const name of Object.keys(parameters))
        assert.match(describeActions(action), new RegExp(`^  ${name} +\\S`, 'm'));
    }
  });
});
