/** Archives of documents: which version is the latest, and that one which was changed is not answered. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Archives } from '../../../mixins/documents/archives.ts';
import { archive } from '../../../scripts/documents/archive.ts';

describe('Archives of documents', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'archives-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const sums = (text: string): string => `${hash('sha256', text)}  index.html\n`;

  /** Writes versions whose only page has the text; `listed`: what the list says the page is. */
  async function archives(versions: { version: string; published: string | null; text: string; listed?: string }[]) {
    for (const { version, text } of versions)
      await writeFile(
        join(folder, `${version}.tar.gz`),
        await archive(
          new Map([
            ['index.html', text],
            ['checksums.txt', sums(text)],
          ]),
        ),
      );
    const rows = versions
      .filter(({ published }) => published !== null)
      .map(({ version, published, text, listed = text }) => ({
        version,
        published,
        checksums: hash('sha256', sums(listed)),
      }));
    await writeFile(join(folder, 'versions.json'), JSON.stringify(rows));
    const version = versions.find(({ published }) => published === null)?.version ?? versions[0]!.version;
    const read = (): Promise<Buffer> => readFile(join(folder, `${version}.tar.gz`));
    return new Archives(pathToFileURL(`${folder}/`), { version, read });
  }

  it('the latest is the newest published version, or the draft while there is none', async () => {
    const draft = { version: '1.10.0', published: null, text: 'draft' };
    const found = await archives([draft, { version: '1.2.0', published: '2026-01-01', text: 'two' }]);
    assert.equal(found.latest?.version, '1.2.0');
    const published = { version: '1.9.0', published: '2026-02-01', text: 'nine' };
    assert.equal((await archives([published, { ...draft, published: '2026-03-01' }])).latest?.version, '1.10.0');
    assert.equal((await archives([draft])).latest?.version, '1.10.0');
  });

  it('a version maps names to files', async () => {
    const found = await archives([{ version: '1.0.0', published: null, text: 'here' }]);
    const files = await found.open(found.find('1.0.0')!);
    assert.deepEqual([...files.keys()].sort(), ['checksums.txt', 'index.html']);
    assert.equal(files.get('index.html')?.body.toString(), 'here');
    assert.equal(files.get('index.html')?.checksum, hash('sha256', 'here'));
    assert.equal(found.find('2.0.0'), undefined);
  });

  it('one whose checksums differ from the list is refused each time', async () => {
    const found = await archives([{ version: '1.0.0', published: '2026-01-01', text: 'changed', listed: 'published' }]);
    for (const version of [found.latest!, found.latest!])
      await assert.rejects(found.open(version), /does not have the checksums/);
  });
});
