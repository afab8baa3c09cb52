/**
 * Generators that need the programming interface of TypeScript get version 5, which oazapfts carries: version 7 has none.
 * It is no dependency of its own, because two packages of TypeScript would both be `tsc`.
 */
import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const parentURL = pathToFileURL(createRequire(import.meta.url).resolve('oazapfts')).href;

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, specifier === 'typescript' ? { ...context, parentURL } : context),
});
