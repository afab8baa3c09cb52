/** The page that the browser shows when it has come back to the command line. */
import { createHash } from 'node:crypto';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN, MARK } from '../../lib/values/page-design.ts';

const STYLE = `${DESIGN}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem}
main{background:var(--card);border:1px solid var(--hair);border-radius:1rem;padding:2.5rem;max-width:28rem;text-align:center}
svg{width:3rem;height:3rem;color:var(--accent);margin-bottom:1rem}
p{color:var(--soft)}p:last-child{margin:0}
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `problem`: why nobody is signed in now; null: somebody is. */
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
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body><main>${MARK}<h1>${title}</h1>${texts.map((text) => `<p>${text}</p>`).join('')}</main></body></html>
`,
  };
}
