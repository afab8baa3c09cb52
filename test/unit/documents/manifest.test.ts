/** The assistant manifest agrees with itself and with the description of the API. */
import assert from 'node:assert/strict';
import { GUIDANCE } from '../../../contracts/guidance.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { build } from '../../../scripts/documents/build.ts';
import { WORKFLOWS } from '../../../scripts/documents/manifest/workflows.ts';

interface Built {
  generatedAt: string | null;
  operations: {
    operationId: string;
    scopes: string[];
    public?: boolean;
    parameters: { name: string; in: string }[];
    requestBody: object | null;
  }[];
}

describe('The assistant manifest', function () {
  this.timeout(30_000);
  let manifest: Built;
  let description: { paths: Record<string, Record<string, { operationId: string; responses: object }>> };
  before(() => {
    const files = build();
    manifest = JSON.parse(files.get('ai-manifest.json')!);
    description = JSON.parse(files.get('openapi.json')!);
  });

  it('has every operation', () => {
    assert.deepEqual(
      manifest.operations.map(({ operationId }) => operationId),
      OPERATIONS.map(({ operationId }) => operationId),
    );
  });

  it('lists the scopes of every operation, and the operations without a token', () => {
    for (const [at, { operationId, scopes, public: open }] of manifest.operations.entries()) {
      const declared = OPERATIONS[at]!.scopes;
      assert.ok(Array.isArray(scopes), operationId);
      assert.deepEqual(scopes, Array.isArray(declared) ? declared : [], operationId);
      assert.equal(open ?? false, declared === 'public', operationId);
    }
  });

  it('lists only possible errors as common', () => {
    const described = Object.values(description.paths).flatMap((item) => Object.values(item));
    const wrong = [...GUIDANCE].flatMap(([operationId, { commonErrors }]) => {
      const answers = JSON.stringify(described.find((one) => one.operationId === operationId)?.responses);
      return commonErrors.filter((code) => !answers.includes(`\`${code}\``)).map((code) => `${operationId}: ${code}`);
    });
    assert.deepEqual(wrong, []);
  });

  it('has workflows of existing operations whose inputs are parameters or earlier outputs', () => {
    const wrong = WORKFLOWS.flatMap(({ id, inputs, steps }) => {
      const ids = new Set(steps.map((step) => step.id));
      const given = new Set([
        ...inputs.map(({ name }) => name),
        ...steps.flatMap(({ gives, onError }) => [
          ...Object.keys(gives ?? {}),
          ...(onError ?? []).flatMap((one) => Object.keys(one.gives ?? {})),
        ]),
      ]);
      return steps.flatMap((step) => {
        const operation = manifest.operations.find(({ operationId }) => operationId === step.operationId)!;
        const problem = (text: string): string => `${id}/${step.id}: ${text}`;
        const targets = [step.next, ...(step.onError ?? []).map(({ goTo }) => goTo)].filter((one) => one != null);
        const places = Object.entries(step.takes ?? {}).flatMap(([place, source]) => {
          const [kind = '', name = ''] = place.split(':');
          const known =
            name === ''
              ? operation.requestBody !== null
              : operation.parameters.some((one) => one.in === kind && one.name === name);
          return [
            ...(known ? [] : [problem(`takes ${place}`)]),
            ...(source && 'from' in source && !given.has(source.from) ? [problem(`from ${source.from}`)] : []),
          ];
        });
        const required = operation.parameters
          .filter((one) => 'required' in one && one.required)
          .filter((one) => !step.takes || !(`${one.in}:${one.name}` in step.takes))
          .map((one) => problem(`leaves ${one.in}:${one.name} out`));
        return [
          ...targets.filter((one) => !ids.has(one)).map((one) => problem(`leads to ${one}`)),
          ...places,
          ...required,
        ];
      });
    });
    assert.deepEqual(wrong, []);
  });
});
