/** Begins: signs in, then loads the rest. */
import { accessToken, completeSignIn, moveHome } from './sign-in.js';

if (!moveHome()) {
  const refused = await completeSignIn()
    .then(accessToken)
    .then(
      () => null,
      (error) => error,
    );
  const { begin } = await import('./approvals.js');
  await begin(refused);
}
