/** The page that the browser shows when it has come back to the command line. */
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN } from '../../lib/values/page-design.ts';
import { framed, inlineStyle } from '../../lib/values/page-frame.ts';

const STYLE = inlineStyle(`${DESIGN}
:root{--width:28rem}
body>header{padding-top:clamp(1rem,12vh,8rem)}
.card{color:var(--soft)}h1{color:var(--ink);font-size:1.5rem}p:last-child{margin:0}
`);

const POLICY = [
  "default-src 'none'",
  `style-src ${STYLE.source}`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `problem`: why the sign-in failed; null: it succeeded. */
export function closingPage(problem: string | null): { html: string; headers: Record<string, string> } {
  const title = problem === null ? 'You are signed in' : 'The sign-in did not work';
  const texts =
    problem === null
      ? ['The command line has what it needs.', 'You can close this window.']
      : [escapeHtml(problem), 'Go back to the command line and start over with <code>erp login</code>.'];
  return {
    headers: {
      'content-security-policy': POLICY,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
    html: framed({
      title,
      head: STYLE.element,
      // The server of the command line ends with this page.
      home: null,
      main: `<h1>${title}</h1>${texts.map((text) => `<p>${text}</p>`).join('')}`,
      mainAttributes: 'class="card"',
    }),
  };
}
