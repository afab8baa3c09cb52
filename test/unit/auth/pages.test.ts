import assert from 'node:assert/strict';
import fc from 'fast-check';
import { COPY_SCRIPT } from '../../../web/sign-in/copy-script.ts';
import { formTarget } from '../../../web/sign-in/layout.ts';
import * as pages from '../../../web/sign-in/pages.ts';
import { PASSKEY_SCRIPT } from '../../../web/sign-in/passkey-script.ts';
import { signInPages } from '../../support/sign-in-pages.ts';

const NASTY = `"><script>alert(1)</script>'&`;

describe('pages of auth', () => {
  it('show hostile text as text', () => {
    for (const page of signInPages(NASTY)) {
      const script = page.passkeys ? PASSKEY_SCRIPT : COPY_SCRIPT;
      const html = pages.render(page).replace(`<script type="module">${script}</script>`, '');
      assert.doesNotMatch(html, /<script/, page.title);
    }
  });

  it('escape any external text', () => {
    const seed = Date.now() % 2 ** 31;
    const shape = (html: string): string => html.replace(/>[^<]*</g, '><').replace(/="[^"]*"/g, '=""');
    const plain = signInPages('x').map((page) => shape(pages.render(page)));
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('<', '>', '"', "'", '&', '=', ' ', 'a', '/'), minLength: 1 }),
        (text) => {
          assert.deepEqual(
            // An empty username moves the focus; a blank one counts as given.
            signInPages(`x${text}`).map((page) => shape(pages.render(page))),
            plain,
          );
        },
      ),
      { seed },
    );
  });

  it('have a language, a title, one main landmark and one heading of the first level', () => {
    for (const page of signInPages('x')) {
      const html = pages.render(page);
      assert.match(html, /<html lang="en">/);
      assert.match(html, /<title>[^<]+<\/title>/);
      assert.equal(html.match(/<main\b/g)?.length, 1, page.title);
      assert.equal(html.match(/<h1\b/g)?.length, 1, page.title);
    }
  });

  it('label every field and announce errors in title and alert', () => {
    for (const page of signInPages('x')) {
      const html = pages.render(page);
      for (const [tag] of html.matchAll(/<input\b[^>]*>/g)) {
        if (/type="hidden"/.test(tag)) continue;
        const id = / id="([^"]+)"/.exec(tag)?.[1];
        assert.ok(id && html.includes(`<label for="${id}">`), tag);
        const hint = /aria-describedby="([^"]+)"/.exec(tag)?.[1];
        if (hint) assert.ok(html.includes(`id="${hint}"`), tag);
      }
      if (page.title.startsWith('Problem'))
        assert.match(html, /<main\b[^>]*>\s*<div class="problem" role="alert">/, page.title);
    }
  });

  it('allow their own stylesheet and nothing else', () => {
    const policy = pages.headers(pages.signedOut())['content-security-policy']!;
    assert.match(
      policy,
      /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'; img-src 'self'; form-action 'self'; /,
    );
  });
});

describe('form targets', () => {
  for (const [redirect, expected] of [
    ['https://app.example/cb?x=1', ['https://app.example']],
    ['http://127.0.0.1:1234/callback', ['http://127.0.0.1:1234']],
    ['http://[::1]:1234/callback', ['http:']],
    ['com.example.app:/cb', ['com.example.app:']],
    ["https://app.example;script-src 'unsafe-inline'/", []],
    ['not a url', []],
    [undefined, []],
  ] as const)
    it(`${redirect} → ${expected.join(' ') || 'here alone'}`, () => assert.deepEqual(formTarget(redirect), expected));
});
