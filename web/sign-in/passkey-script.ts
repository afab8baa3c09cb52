/**
 * The script of pages with passkeys: it asks the browser for a passkey and sends the answer with the page's own form. A form
 * with `data-passkey` is hidden until the browser has shown that it can; one that cannot gets a hint instead. A module,
 * so it runs when the page is there.
 */
export const PASSKEY_SCRIPT = `
const form = document.querySelector('form[data-passkey]');
const able = globalThis.PublicKeyCredential;
const show = (those) => {
  for (const hidden of document.querySelectorAll(those)) hidden.hidden = false;
};
if (form && able?.parseRequestOptionsFromJSON) {
  const creating = form.dataset.passkey === 'create';
  const options = JSON.parse(form.dataset.options);
  const publicKey = creating
    ? able.parseCreationOptionsFromJSON(options) : able.parseRequestOptionsFromJSON(options);
  const status = form.querySelector('[role=status]');
  let asking;
  const ask = async (mediation) => {
    asking?.abort();
    asking = new AbortController();
    const request = { publicKey, signal: asking.signal, ...(mediation ? { mediation } : {}) };
    try {
      const credential = await (creating
        ? navigator.credentials.create(request) : navigator.credentials.get(request));
      form.elements.credential.value = JSON.stringify(credential.toJSON());
      form.submit();
    } catch (error) {
      if (mediation || error.name === 'AbortError') return;
      status.textContent = error.name === 'InvalidStateError'
        ? 'This device has a passkey for you already.'
        : 'No passkey was used. Try again, or choose another way.';
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    ask();
  });
  show('[data-with-passkeys]');
  if (!creating && form.dataset.passkey === 'autofill' && await able.isConditionalMediationAvailable?.())
    ask('conditional');
} else show('[data-without-passkeys]');
`;
