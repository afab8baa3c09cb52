/** The build that this process runs. */
import { readFileSync } from 'node:fs';

const file = new URL('../../package.json', import.meta.url);

/** As in package.json, such as `0.1.0`. */
export const PRODUCT_VERSION: string = JSON.parse(readFileSync(file, 'utf8')).version;
