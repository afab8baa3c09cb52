/** What the commands that move tenants need, read when one of them is called. */
export { checkFile, copyTenant, exportToFile, importFromFile } from './files.ts';
export { asOwner } from './owner.ts';
export { stoppable } from './progress.ts';
