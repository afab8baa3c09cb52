import assert from 'node:assert/strict';
import { join } from 'node:path';
import { ConfigError, readConfig } from '../../../config/env.ts';

const filesOf = (url?: string) =>
  readConfig({ DATA_DIR: '/var/erp', ...(url === undefined ? {} : { FILES_URL: url }) }).files;

describe('FILES_URL', () => {
  it('is a folder below DATA_DIR by default', () => {
    for (const url of [undefined, ''])
      assert.deepEqual(filesOf(url), { by: 'folder', folder: join('/var/erp', 'files') });
  });

  it('names a folder', () => {
    assert.deepEqual(filesOf('file:///srv/a%20b'), { by: 'folder', folder: '/srv/a b' });
  });

  it('names a bucket, at Amazon or elsewhere', () => {
    assert.deepEqual(filesOf('s3://erp'), { by: 's3', bucket: 'erp', prefix: '', endpoint: null, region: null });
    assert.deepEqual(filesOf('s3://erp/a/b/?region=eu-central-1&endpoint=https://store.example:9000'), {
      by: 's3',
      bucket: 'erp',
      prefix: 'a/b/',
      endpoint: 'https://store.example:9000',
      region: 'eu-central-1',
    });
  });

  it('is refused in any other form, without being repeated', () => {
    for (const url of [
      'files',
      'https://erp.example',
      's3:///a',
      's3://user:secret@erp',
      's3://erp?profile=secret',
      's3://erp?endpoint=secret',
      'file://host/secret',
    ])
      assert.throws(
        () => filesOf(url),
        (error) =>
          error instanceof ConfigError && /^FILES_URL must be/.test(error.message) && !/secret/.test(error.message),
        url,
      );
  });
});
