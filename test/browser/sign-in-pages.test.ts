/** The pages of sign-in and account in headless Chromium, in each of their states, with a long name in every place. */
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { render } from '../../web/sign-in/pages.ts';
import { findings, startChromium, visit } from '../support/chromium.ts';
import { signInPages } from '../support/sign-in-pages.ts';

/** A mail address of maximum length, without a break opportunity. */
const LONG = 'firstname.lastname.of.somebody@a-company-with-a-long-name.example';

describe('every page of sign-in in Chromium', function () {
  this.timeout(300_000);
  let browser: Browser;
  before(async () => {
    browser = await startChromium();
  });
  after(() => browser?.close());

  for (const width of [360, 1280])
    it(`is readable at ${width} px, in light and dark`, async () => {
      const { page, context } = await visit(browser, 'about:', { viewport: { width, height: 740 } });
      for (const each of signInPages(LONG)) {
        await page.emulateMedia({ colorScheme: 'light' });
        await page.setContent(render(each));
        await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true");
        assert.deepEqual(await findings(page), [], each.title);
        const wider = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.ok(Number(wider) <= 0, `${each.title}: ${wider} px wider than the screen`);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await findings(page, 'colours'), [], `${each.title}, dark`);
      }
      await context.close();
    });
});
