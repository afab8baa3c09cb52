/**
 * The frame of every page: one inline stylesheet and, where passkeys are used, one inline script, each allowed by its
 * hash and nothing else is; light and dark. Pages are plain HTML that works with a keyboard, a screen reader and a text
 * browser; only passkeys need the script.
 */
import { createHash } from 'node:crypto';
import { escapeHtml } from '../../../lib/values/html.ts';
import { DESIGN, MARK } from '../../../lib/values/page-design.ts';
import { PASSKEY_SCRIPT } from './passkey-script.ts';

export interface Page {
  title: string;
  /** HTML inside <main>. */
  body: string;
  status: number;
  /** Where the page's forms may lead apart from this server: the client's redirect, which browsers check as well. */
  formTargets?: readonly string[];
  /** The page has a form that uses a passkey. */
  passkeys?: boolean;
  /** Seconds, for a page that asks to wait. */
  retryAfterSeconds?: number;
}

const STYLE = `${DESIGN}
body{margin:0;min-height:100vh;min-height:100dvh;display:flex;flex-direction:column;align-items:center;
padding:clamp(1rem,8vh,6rem) 1rem 1rem}
header{width:100%;max-width:26rem;display:flex;align-items:center;gap:.6rem;padding:0 .25rem 1rem;font-weight:650;
letter-spacing:.01em}
header svg{width:1.75rem;height:1.75rem;flex:none}
main{width:100%;max-width:26rem;background:var(--card);border:1px solid var(--hair);border-radius:.75rem;padding:2rem;
box-shadow:0 1px 2px rgb(16 32 48/.06),0 12px 32px -12px rgb(16 32 48/.18)}
.lead{color:var(--soft);margin-bottom:1.5rem}.lead strong,.lead b{color:var(--ink);
overflow-wrap:anywhere}
label,.label{display:block;font-weight:600;margin:0 0 .35rem}
.hint{color:var(--soft);font-size:.9rem;margin:.35rem 0 0}
.field{margin:0 0 1.25rem}
input[aria-invalid=true]{border-color:var(--bad);border-width:2px}
input.code{font:600 1.4rem/1.3 ui-monospace,"SF Mono",Menlo,Consolas,monospace;letter-spacing:.15em;
text-align:center;text-transform:uppercase}
.scopes{margin:0 0 1.25rem;border:1px solid var(--hair);border-radius:.5rem;max-height:19rem;overflow:auto}
.scopes ul{list-style:none;margin:0;padding:0}
.scopes li{padding:.55rem .85rem;border-top:1px solid var(--hair)}.scopes li:first-child{border-top:0}
.scopes code{display:block;color:var(--soft)}
.spaced{margin-top:1.25rem}
.usercode{font:650 1.75rem/1.3 ui-monospace,"SF Mono",Menlo,Consolas,monospace;letter-spacing:.12em;
text-align:center;background:var(--ground);border-radius:.5rem;padding:.75rem;margin:0 0 1.25rem}
.done{color:var(--good)}
.or{display:flex;align-items:center;gap:.75rem;color:var(--soft);margin:1.5rem 0 1rem}
.or::before,.or::after{content:"";flex:1;border-top:1px solid var(--hair)}
[role=status]:not(:empty){margin:.75rem 0 0}
form[hidden],.or[hidden]{display:none}
details{margin:1.25rem 0 0}summary{cursor:pointer;color:var(--accent);font-weight:600;padding:.35rem 0}
.qr{background:#fff;border-radius:.5rem;padding:.5rem;margin:0 auto 1.25rem;width:12rem}
.qr svg{display:block;width:100%;height:auto}
.secret{font:600 1rem/1.6 ui-monospace,"SF Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere;
background:var(--ground);border-radius:.5rem;padding:.6rem .75rem;margin:0 0 1.25rem}
.codes{display:grid;grid-template-columns:repeat(auto-fit,minmax(11.5rem,1fr));gap:.4rem 1rem;list-style:none;
margin:0 0 1.25rem;padding:1rem;background:var(--ground);border-radius:.5rem;
font:600 1rem/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
section{border-top:1px solid var(--hair);margin-top:1.75rem;padding-top:1.5rem}
h2{font-size:1.1rem;margin:0 0 .5rem}
.keys{list-style:none;margin:.75rem 0 1rem;padding:0}.keys>li{border:1px solid var(--hair);border-radius:.5rem;
padding:.75rem .85rem;margin:0 0 .6rem}.keys b{overflow-wrap:anywhere}.keys .hint{margin:.1rem 0 0}
.keys details{margin:.35rem 0 0}
.notice{border:1px solid var(--good);border-left-width:.35rem;border-radius:.5rem;padding:.75rem 1rem;margin:0 0 1.25rem}
.notice p{margin:0}
footer{max-width:26rem;width:100%;color:var(--soft);font-size:.85rem;padding:1rem .25rem}
@media(max-width:30rem){main{padding:1.5rem 1.25rem}}
`;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64');
const STYLE_HASH = sha256(STYLE);
const SCRIPT_HASH = sha256(PASSKEY_SCRIPT);

export function render(page: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(page.title)} · ERP platform</title>
<style>${STYLE}</style>
</head>
<body>
<header>${MARK}<span>ERP platform</span></header>
<main>
${page.body}
</main>
<footer>Only type your password on this address. Nobody will ever ask you for it by mail or telephone.</footer>
${page.passkeys ? `<script type="module">${PASSKEY_SCRIPT}</script>\n` : ''}</body>
</html>
`;
}

export function headers(page: Page): Record<string, string> {
  const formAction = ["'self'", ...(page.formTargets ?? [])].join(' ');
  return {
    'content-security-policy': [
      "default-src 'none'",
      `style-src 'sha256-${STYLE_HASH}'`,
      ...(page.passkeys ? [`script-src 'sha256-${SCRIPT_HASH}'`] : []),
      `form-action ${formAction}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; '),
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
    ...(page.retryAfterSeconds ? { 'retry-after': String(page.retryAfterSeconds) } : {}),
  };
}

/** Where a form that ends at this redirect address may lead, as a CSP source. */
export function formTarget(redirectUri: unknown): string[] {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri) : null;
  if (!url) return [];
  // CSP has no way to write an IPv6 host; private schemes have no host at all.
  return url.protocol !== 'https:' && (url.protocol !== 'http:' || url.hostname.startsWith('['))
    ? [url.protocol]
    : [url.origin];
}
