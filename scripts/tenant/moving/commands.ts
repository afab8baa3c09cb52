/** Lazily loaded dependencies of the commands that move tenants. */
export { checkFile, copyTenant, exportToFile, importFromFile } from './files.ts';
export { asOwner } from './owner.ts';
export { stoppable } from './progress.ts';
