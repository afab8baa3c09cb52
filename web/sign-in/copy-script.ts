/** The script of pages with a field to copy: its button is hidden until the browser has shown that it can. */
export const COPY_SCRIPT = `
const button = document.querySelector('[data-copy]');
const field = document.getElementById(button.dataset.copy);
const status = document.querySelector('[role=status]');
field.addEventListener('focus', () => field.select());
if (navigator.clipboard) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(field.value);
      status.textContent = 'Copied.';
    } catch {
      field.focus();
      status.textContent = 'The browser did not copy it. It is selected: copy it yourself.';
    }
  });
}
`;
