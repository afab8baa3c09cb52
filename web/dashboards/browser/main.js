/**
 * Begins: signs in, then loads the rest. A visitor without a token leaves at once for the sign-in, and should not wait
 * for scripts that only the way back needs.
 */
import { accessToken, completeSignIn, moveHome } from './sign-in.js';

if (!moveHome()) {
  const refused = await completeSignIn()
    .then(accessToken)
    .then(
      () => null,
      (error) => error,
    );
  const { begin } = await import('./pages.js');
  await begin(refused);
}
