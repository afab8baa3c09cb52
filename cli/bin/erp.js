#!/usr/bin/env node
/** Starts `erp`: the sources of a checkout, or the compiled files of an installed package. */
import { existsSync, readFileSync } from 'node:fs';

const NODE_MIN = 24;

if (Number(process.versions.node.split('.')[0]) < NODE_MIN) {
  console.error(`erp needs Node ${NODE_MIN} or newer; this is ${process.version}.`);
  process.exit(1);
}
// An older Node lacks it, and would stop at a static import before it could say so.
const { enableCompileCache } = await import('node:module');
enableCompileCache();
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
// Node strips no types below node_modules, so that a package brings compiled files and no sources.
const sources = new URL('../main.ts', import.meta.url);
const { main } = await import(
  existsSync(sources) ? sources.href : new URL('../dist/cli/main.js', import.meta.url).href
);
await main(process.argv.slice(2), version);
