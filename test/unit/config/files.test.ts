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
    assert.deepEqual(filesOf('s3://erp'), {
      by: 's3',
      bucket: 'erp',
      prefix: '',
      endpoint: null,
      region: null,
      redirects: false,
    });
    assert.deepEqual(filesOf('s3://erp/a/b/?region=eu-central-1&endpoint=https://store.example:9000&redirects=true'), {
      by: 's3',
      bucket: 'erp',
      prefix: 'a/b/',
      endpoint: 'https://store.example:9000',
      region: 'eu-central-1',
      redirects: true,
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
      's3://erp?redirects=secret',
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

describe('FILES_KEY', () => {
  const KEYS = ['a'.repeat(32), 'b'.repeat(32), 'c'.repeat(32)] as const;
  const keysOf = (env: Record<string, string>) => readConfig(env).filesKeys;

  it('comes first, and those before it after it', () => {
    assert.deepEqual(keysOf({}), []);
    assert.deepEqual(keysOf({ FILES_KEY: '', FILES_KEYS_PREVIOUS: '' }), []);
    assert.deepEqual(keysOf({ FILES_KEY: KEYS[0] }), [KEYS[0]]);
    assert.deepEqual(keysOf({ FILES_KEY: KEYS[0], FILES_KEYS_PREVIOUS: `${KEYS[1]}, ${KEYS[2]}` }), KEYS);
  });

  it('has 32 characters or more, and is needed beside earlier ones', () => {
    for (const env of [
      { FILES_KEY: 'short' },
      { FILES_KEY: KEYS[0], FILES_KEYS_PREVIOUS: 'short' },
      { FILES_KEYS_PREVIOUS: KEYS[1] },
    ])
      assert.throws(
        () => keysOf(env),
        (error) => error instanceof ConfigError && /^FILES_KEY/.test(error.message) && !/short/.test(error.message),
      );
  });
});
