/** Chooses where blobs are kept. */
import type { FilesConfig } from '../../config/files.ts';
import type { Blobs } from './blobs.ts';
import { FolderBlobs } from './folder.ts';

/** The store that the configuration names. Nothing is reached before the first use. */
export async function openBlobs(files: FilesConfig): Promise<Blobs> {
  if (files.by === 'folder') return new FolderBlobs(files.folder);
  const { S3Blobs } = await import('./s3.ts'); // loads the SDK, which others do not need
  return new S3Blobs(files);
}
