/** What was published never changes: the archive of each version has the files of its checksums, and those of the list. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { Archives } from '../../mixins/documents/archives.ts';
import { build, VERSION } from '../../scripts/documents/build.ts';
import { repositoryFiles } from '../support/sources.ts';

/** Checksums of published versions, written here when they were published. */
const PUBLISHED: Readonly<Record<string, string>> = {};

describe('published documents', () => {
  const archives = new Archives();

  it('are as they were published', () => {
    const published = archives.versions.filter(({ published }) => published !== null);
    assert.deepEqual(Object.fromEntries(published.map(({ version, checksums }) => [version, checksums])), PUBLISHED);
  });

  it('have the files of their checksums, and no others', async () => {
    for (const version of archives.versions) {
      const files = await archives.open(version);
      const list = files.get('checksums.txt')!.body.toString();
      const found = [...files].filter(([name]) => name !== 'checksums.txt');
      assert.equal(list, found.map(([name, { body }]) => `${hash('sha256', body)}  ${name}\n`).join(''));
    }
  });

  it('are built from the sources as they are, while they are a draft', () => {
    const draft = archives.versions.find(({ version, published }) => version === VERSION && published === null);
    if (draft) assert.equal(hash('sha256', build().get('checksums.txt')!), draft.checksums, 'run `npm run documents`');
  });

  it('are what is in the folder', () => {
    const names = repositoryFiles().filter((path) => path.startsWith('published/'));
    assert.deepEqual(
      names.sort(),
      ['published/versions.json', ...archives.versions.map(({ version }) => `published/${version}.tar.gz`)].sort(),
    );
  });
});
