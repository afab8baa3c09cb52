/** Starts the page: other modules are loaded once the user has signed in. */
import { start } from '../../shared/sign-in.js';

await start(() => import('./pages.js'));
