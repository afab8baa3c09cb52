/** Every example of the documents is executed, or has a stated reason why not. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { ELSEWHERE, NOT_TRIED, TRIED } from '../support/documented-examples.ts';
import { allExamples } from '../support/examples.ts';
import { read, repositoryFiles } from '../support/sources.ts';

/** Guides whose blocks of the shell test/api/guides.ts runs, one after the other. */
const WALKED = new Set(
  [...read('test/api/guides.ts').matchAll(/walk\('([\w-]+\.md)'/g)].map(([, name]) => `docs/guides/${name}`),
);
/** Sections of the README that test/api/readme.test.ts runs. */
const WALK_OF_README = /^README\.md#(?:the-first-request|configuration-as-files)(?: \d)?$/;

/** Console input: test/cluster/console.test.ts types each line. */
const isTyped = (text: string): boolean => text.split(/\n(?=.)/).every((line) => line.startsWith('erp $ '));

describe('an example of the documents', () => {
  const examples = allExamples();
  const isWalked = ({ name, file, language }: { name: string; file: string; language: string }): boolean =>
    language === 'sh' && (WALKED.has(file) || WALK_OF_README.test(name));

  it('is executed by a test, or has a reason why not', () => {
    assert.ok(WALKED.size > 10);
    const known = [TRIED, ELSEWHERE, NOT_TRIED].flatMap(Object.keys);
    assert.deepEqual(
      examples
        .filter((one) => !isWalked(one) && !isTyped(one.text))
        .map(({ name }) => name)
        .sort(),
      known.sort(),
      'test/support/documented-examples.ts has one row for each',
    );
  });

  it('is named by the test that runs it', () => {
    for (const [name, file] of Object.entries(ELSEWHERE)) {
      const [section = ''] = (name.split('#')[1] ?? '').split(' ');
      assert.ok(read(file).includes(section), `${file} runs ${name}`);
    }
  });

  it('and each sentence name existing scripts and tests', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const files = repositoryFiles();
    for (const path of files.filter((one) => /^(?:README|CONTRIBUTING|docs\/.+)\.md$/.test(one))) {
      const text = read(path);
      for (const [command, name = ''] of text.matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*)/g))
        assert.ok(name in scripts, `${path}: ${command}`);
      for (const [command, file = ''] of text.matchAll(/\bnpm test -- (\S+\.ts)/g))
        assert.ok(files.includes(file), `${path}: ${command}`);
    }
  });

  it('is JSON where it says so', () => {
    for (const { name, language, text } of examples)
      if (language === 'json') assert.doesNotThrow(() => JSON.parse(text), name);
  });

  it('is valid shell syntax where it is not executed', () => {
    for (const { name, language, text } of examples)
      if (language === 'sh' && name in NOT_TRIED)
        assert.doesNotThrow(() => execFileSync('bash', ['-n'], { input: text, stdio: 'pipe' }), name);
  });
});
