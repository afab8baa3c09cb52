/** For suites whose tests stand on those before: after a failure the rest is skipped. Mocha's `bail` would end the whole run. */
export function inSteps(): void {
  let failed = false;
  beforeEach(function () {
    if (failed) this.skip();
  });
  afterEach(function () {
    failed ||= this.currentTest?.state === 'failed';
  });
}
