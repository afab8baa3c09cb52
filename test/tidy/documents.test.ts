/** Published versions never change: each archive matches its own checksums and those of the list. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { Archives, publishedVersions } from '../../mixins/documents/archives.ts';
import { repositoryFiles } from '../support/sources.ts';

/** Checksums of published versions, added here when they are published. */
const PUBLISHED: Readonly<Record<string, string>> = {};

describe('published documents', () => {
  const versions = publishedVersions();

  it('are unchanged since publication', () => {
    assert.deepEqual(Object.fromEntries(versions.map(({ version, checksums }) => [version, checksums])), PUBLISHED);
  });

  it('have the files of their checksums, and no others', async () => {
    const archives = new Archives();
    for (const version of versions) {
      const files = await archives.open(version);
      const list = files.get('checksums.txt')!.body.toString();
      const found = [...files].filter(([name]) => name !== 'checksums.txt');
      assert.equal(list, found.map(([name, { body }]) => `${hash('sha256', body)}  ${name}\n`).join(''));
    }
  });

  it('are what is in the folder, without a draft', () => {
    const names = repositoryFiles().filter((path) => path.startsWith('published/'));
    assert.deepEqual(
      names.sort(),
      ['published/versions.json', ...versions.map(({ version }) => `published/${version}.tar.gz`)].sort(),
    );
  });
});
