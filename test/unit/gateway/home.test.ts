/** Content of the public home page in every configuration. */
import assert from 'node:assert/strict';
import { readConfig } from '../../../config/env.ts';
import { DEMO_TENANTS } from '../../../templates/seed.ts';
import { DEMO_USERS, home } from '../../../web/site/home.ts';

const page = (env: NodeJS.ProcessEnv): string => home('https://erp.example', readConfig(env)).html.body.toString();
const PRODUCTION = {
  NODE_ENV: 'production',
  PLATFORM_SECRET: 'hT3Vq0yXo7mB1rKzE9cWfUa5LdJs2GiNpQ8vYt6xZb4R/wOu+lHkMeCgDjAnSPIF',
  BASE_URL: 'https://erp.example',
  DATABASE_URL: 'postgres://erp:Zk3_vQ9-mT@localhost/erp',
};

describe('the home page', () => {
  it('lists the demo users and the public password from README.md', () => {
    const html = page({});
    for (const { username } of DEMO_USERS) assert.ok(html.includes(encodeURIComponent(username)), username);
    assert.ok(html.includes('demo-password'));
    const existing = DEMO_TENANTS.flatMap(({ users }) => users.map(({ username }) => username));
    for (const { username } of DEMO_USERS) assert.ok(existing.includes(username), username);
  });

  it('gives the command for a token with the address of this platform', () => {
    assert.match(page({}), /token -- --user sam@demo\.example \\\n {2}--base-url https:\/\/erp\.example\)/);
  });

  it('does not show a custom password', () => {
    const html = page({ DEMO_PASSWORD: 'chosen by somebody' });
    assert.ok(html.includes('Sign in as Sam'));
    assert.doesNotMatch(html, /chosen by somebody|demo-password/);
  });

  it('shows no demo in production, on its database, or when disabled', () => {
    for (const env of [
      { SEED_DEMO: 'false' },
      { DATABASE_ALLOW_DEVELOPMENT: 'true' },
      PRODUCTION,
      { ...PRODUCTION, SEED_DEMO: 'true', DEMO_PASSWORD: 'demo-password' },
    ])
      assert.doesNotMatch(page(env), /demo|password/i);
  });

  it('is listed by search engines, has its headings in order, and no script', () => {
    const html = page(PRODUCTION);
    assert.doesNotMatch(html, /noindex|<script|<style[^>]* src| style=| on[a-z]+=/);
    const levels = [...html.matchAll(/<h(\d)/g)].map(([, level]) => Number(level));
    assert.equal(levels.filter((level) => level === 1).length, 1);
    for (const [at, level] of levels.entries()) assert.ok(level <= (levels[at - 1] ?? 0) + 1, levels.join(' '));
  });

  it('names its public address', () => {
    const html = page(PRODUCTION);
    assert.ok(html.includes('curl -s https://erp.example/api/v1/identity'));
    const commands = [...html.matchAll(/<pre[^>]*><code>([\s\S]*?)<\/code>/g)].flatMap(([, text = '']) =>
      text.split('\n'),
    );
    for (const line of commands) assert.ok(line.length <= 80, `cut off on a wide screen: ${line}`);
  });
});
