/**
 * Loaded into a process before its program (`node --import`): its wall clock differs from the machine's by the
 * milliseconds in the file STORM_CLOCK. Monotonic clocks stay as they are.
 */
import { readFileSync } from 'node:fs';

const file = process.env['STORM_CLOCK'];
const real = Date.now;
let offset = 0;

if (file) {
  const read = (): void => {
    try {
      offset = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      // The storm is over and has removed it.
    }
  };
  read();
  setInterval(read, 100).unref();
  Date.now = () => real() + offset;
  globalThis.Date = new Proxy(Date, {
    construct: (target, values, made) => Reflect.construct(target, values.length ? values : [real() + offset], made),
    apply: () => new Date().toString(),
  });
}
