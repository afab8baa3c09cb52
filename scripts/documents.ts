/**
 * `npm run documents`: builds the documents of the current version as a draft into .documents/, unless its sources are
 * unchanged. With `-- --publish 2026-12-01` it writes them to published/, where they never change.
 * Source: docs/decisions/versioned-documents.md.
 */
import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import writeFileAtomic from 'write-file-atomic';
import { API_VERSION as VERSION } from '../lib/addresses.ts';
import { codeOf } from '../lib/errors/thrown.ts';
import { required } from '../lib/values/required.ts';
import { CHECKSUMS, publishedVersions } from '../mixins/documents/archives.ts';
import { readArguments, refuse } from './arguments.ts';

const COMMAND = {
  name: 'documents',
  usage:
    'npm run documents [-- --publish DAY]\n\nBuilds the documents of the current version as a draft, which processes serve. With --publish,\n' +
    'such as --publish 2026-12-01, it writes them to published/ as published on that day.',
};
const ROOT = new URL('../', import.meta.url);
const DRAFTS = new URL('.documents/', ROOT);
const DRAFT = new URL(`${VERSION}.tar.gz`, DRAFTS);
/** The sources that the draft was built from. */
const BUILT_FROM = new URL(`${VERSION}.sources`, DRAFTS);
const PUBLISHED = new URL('published/', ROOT);

/** Everything that a build may read. */
const SOURCES = [
  'CHANGELOG.md',
  'package-lock.json',
  'config',
  'contracts',
  'docs',
  'lib',
  'mixins',
  'scripts',
  'services',
  'web',
];

function sourcesHash(): string {
  const lines = SOURCES.flatMap((source) => {
    const folder = new URL(`${source}/`, ROOT);
    const names = /\.\w+$/.test(source) ? [null] : readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
    return names.flatMap((name) => {
      const content = contentOf(name === null ? new URL(source, ROOT) : new URL(name, folder));
      return content === null ? [] : [`${source}/${name} ${hash('sha256', content)}\n`];
    });
  });
  return hash('sha256', lines.join(''));
}

function contentOf(file: URL): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (codeOf(error) === 'EISDIR') return null;
    throw error;
  }
}

function isCurrent(sources: string): boolean {
  try {
    return readFileSync(BUILT_FROM, 'utf8') === sources && readFileSync(DRAFT).length > 0;
  } catch {
    return false;
  }
}

async function built(): Promise<{ archive: Buffer; checksums: string; count: number }> {
  const [{ build }, { archive }] = await Promise.all([
    import('./documents/build.ts'),
    import('./documents/archive.ts'),
  ]);
  const files = build();
  return { archive: await archive(files), checksums: hash('sha256', required(files, CHECKSUMS)), count: files.size };
}

const { values } = readArguments(COMMAND, { options: { publish: { type: 'string' } } });
const day = values.publish;
if (day === undefined) {
  const sources = sourcesHash();
  if (!isCurrent(sources)) {
    const { archive, count } = await built();
    mkdirSync(DRAFTS, { recursive: true });
    // Several processes may build it at once.
    await writeFileAtomic(fileURLToPath(DRAFT), archive);
    await writeFileAtomic(fileURLToPath(BUILT_FROM), sources);
    console.log(`.documents/${VERSION}.tar.gz: ${count} files, ${Math.ceil(archive.length / 1024)} KiB`);
  }
} else {
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) refuse(COMMAND, 'the day must be written as 2026-12-01.');
  const versions = publishedVersions();
  const known = versions.find(({ version }) => version === VERSION);
  if (known) refuse(COMMAND, `version ${VERSION} was published on ${known.published} and does not change any more.`);
  const { archive, checksums } = await built();
  writeFileSync(new URL(`${VERSION}.tar.gz`, PUBLISHED), archive);
  const rows = [...versions, { version: VERSION, published: day, checksums }];
  writeFileSync(new URL('versions.json', PUBLISHED), `${JSON.stringify(rows, null, 2)}\n`);
  console.log(
    `published/${VERSION}.tar.gz is published; add its checksums to test/tidy/documents.test.ts: ${checksums}`,
  );
}
