/**
 * A page of the documents as this host serves it: its examples name the address of this platform, and can be copied.
 * Without this script they name a platform on the reader's own machine.
 */

const EXAMPLE = 'http://localhost:3000';

const article = document.querySelector('article');
if (article) {
  nameThisHost(article);
  // Browsers have no clipboard for pages that came over plain HTTP from another machine.
  if (navigator.clipboard) offerCopies(article);
}

/** @param {Element} text */
function nameThisHost(text) {
  const nodes = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode())
    if (node.nodeValue?.includes(EXAMPLE)) node.nodeValue = node.nodeValue.replaceAll(EXAMPLE, location.origin);
}

/** @param {Element} text */
function offerCopies(text) {
  const status = document.createElement('p');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  text.append(status);
  for (const pre of text.querySelectorAll('pre')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', 'Copy the example');
    button.addEventListener('click', () => copy(pre.textContent ?? '', button, status));
    const example = document.createElement('div');
    example.className = 'example';
    pre.replaceWith(example);
    example.append(pre, button);
  }
}

const SHOWN_MS = 2_000;

/**
 * @param {string} text
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} status
 */
async function copy(text, button, status) {
  const said = await navigator.clipboard.writeText(text).then(
    () => 'Copied',
    () => 'Not copied',
  );
  button.textContent = said;
  status.textContent = said;
  setTimeout(() => {
    button.textContent = 'Copy';
    status.textContent = '';
  }, SHOWN_MS);
}
