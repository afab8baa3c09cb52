import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('provisioning users', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform();
  });
  after(() => platform.stop());

  it('tries', async () => {
    const token = await tokenFor(platform.baseUrl, 'ada', 'users:manage');
    const send = async (method: string, path: string, body?: unknown, headers = {}) => {
      const res = await fetch(`${platform.baseUrl}/scim/v2${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body ? { 'content-type': 'application/scim+json' } : {}),
          ...headers,
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const text = await res.text();
      return text ? JSON.parse(text) : null;
    };
    await send('GET', '/ServiceProviderConfig');
    await send('GET', '/Users?count=2');
    await send('GET', '/Users?filter=' + encodeURIComponent('userName eq "SAM@demo.example"'));
    await send(
      'GET',
      '/Users?filter=' +
        encodeURIComponent('(active eq true and not (userName co "s")) or externalId eq "x"') +
        '&attributes=userName',
    );
    const { id } = await send('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: 'new@demo.example',
      externalId: 'e1',
      name: { givenName: 'New', familyName: 'Person' },
      emails: [{ value: 'new@demo.example', primary: true }],
    });
    await send('POST', '/Users', { userName: 'NEW@demo.example' });
    await send('PATCH', '/Users/' + id, {
      Operations: [
        { op: 'Replace', path: 'active', value: 'False' },
        { op: 'add', path: 'roles', value: [{ value: 'SalesManager' }] },
      ],
    });
    await send('GET', '/Groups');
    await send('DELETE', `/Users/${id}`);
    await send('GET', `/Users/${id}`);
    await send('POST', '/Users', { userName: 'NEW@demo.example' });
    await send('GET', '/Foo');
    await send('GET', '/Users?filter=x');
    assert.ok(id);
  });
});
