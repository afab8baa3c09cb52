/**
 * `npm run documents`: builds the documents of the current version into published/, as a draft. A published version
 * never changes: publishing is to set its date in published/versions.json, after which this script refuses.
 * Source: docs/decisions/versioned-documents.md.
 */
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { CHECKSUMS, type Version } from '../mixins/documents/archives.ts';
import { archive } from './documents/archive.ts';
import { build, VERSION } from './documents/build.ts';

const folder = new URL('../published/', import.meta.url);
const list = new URL('versions.json', folder);

const files = build();
const checksums = hash('sha256', files.get(CHECKSUMS)!);
const versions = readVersions();
const known = versions.find(({ version }) => version === VERSION);
if (known?.published && known.checksums !== checksums)
  throw new Error(`Version ${VERSION} was published on ${known.published} and does not change any more.`);
const compressed = await archive(files);
mkdirSync(folder, { recursive: true });
writeFileSync(new URL(`${VERSION}.tar.gz`, folder), compressed);
const others = versions.filter(({ version }) => version !== VERSION);
const row = known?.published ? known : { version: VERSION, published: null, checksums };
writeFileSync(list, `${JSON.stringify([...others, row], null, 2)}\n`);
console.log(`published/${VERSION}.tar.gz: ${files.size} files, ${Math.ceil(compressed.length / 1024)} KiB`);

function readVersions(): Version[] {
  try {
    return JSON.parse(readFileSync(list, 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
