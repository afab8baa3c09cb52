/** Chooses where blobs are kept. */
import type { Config } from '../../config/env.ts';
import type { FilesConfig } from '../../config/files.ts';
import type { Blobs } from './blobs.ts';
import { CountedBlobs } from './counted.ts';
import { FolderBlobs } from './folder.ts';
import { SealedBlobs } from './sealed.ts';

/** The store that the configuration names. Nothing is reached before the first use. */
export async function openBlobs({ files, filesKeys }: Pick<Config, 'files' | 'filesKeys'>): Promise<CountedBlobs> {
  const blobs = await storeOf(files);
  const [newest, ...earlier] = filesKeys;
  return new CountedBlobs(newest === undefined ? blobs : new SealedBlobs(blobs, [newest, ...earlier]));
}

async function storeOf(files: FilesConfig): Promise<Blobs> {
  if (files.by === 'folder') return new FolderBlobs(files.folder);
  const { S3Blobs } = await import('./s3.ts'); // loads the SDK, which others do not need
  return new S3Blobs(files);
}
