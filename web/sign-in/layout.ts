/**
 * The frame of every page: one inline stylesheet and, where passkeys are used or something is copied, one inline script,
 * each allowed by its hash and nothing else is; light and dark. Pages are plain HTML that works with a keyboard, a screen
 * reader and a text browser; only passkeys need a script, and pass-on.ts has one that saves a click.
 */
import { hash } from 'node:crypto';
import { DESIGN, FORMS } from '../../lib/values/page-design.ts';
import { framed, ICON_LINK, inlineStyle } from '../../lib/values/page-frame.ts';
import { COPY_SCRIPT } from './copy-script.ts';
import { PASSKEY_SCRIPT } from './passkey-script.ts';

export interface Page {
  title: string;
  /** HTML inside <main>. */
  body: string;
  status: number;
  /** Targets of the page's forms besides this server: the client's redirect, which browsers check as well. */
  formTargets?: readonly string[];
  /** The page has a form that uses a passkey. */
  passkeys?: boolean;
  /** The page has a button that copies a field. */
  copies?: boolean;
  /** Target of an automatic redirect once the page is loaded. */
  continueTo?: URL;
  /** In place of the warning that passwords are typed here alone. */
  footer?: string;
  /** Seconds, for a page that asks to wait. */
  retryAfterSeconds?: number;
}

const STYLE = inlineStyle(`${DESIGN}${FORMS}
:root{--width:26rem}
body>header{padding-top:clamp(1rem,8vh,6rem)}
h1{font-size:1.5rem}
.card{overflow-wrap:anywhere;box-shadow:0 1px 2px rgb(16 32 48/.06),0 12px 32px -12px rgb(16 32 48/.18);padding-bottom:2rem}
.lead{margin-bottom:1.5rem}.lead strong,.lead b{color:var(--ink)}
label,.label{display:block;font-weight:600;margin:0 0 .35rem}
.hint{color:var(--soft);font-size:.9rem;margin:.35rem 0 0}
.field{margin:0 0 1.25rem}.hint+form .field{margin-top:1rem}
.agent{border-inline-start:.25rem solid var(--accent);padding-inline-start:.75rem}
.problem strong{color:var(--bad)}
input[aria-invalid=true]{border-color:var(--bad);border-width:2px}
input.code{font:600 1.4rem/1.3 var(--mono);letter-spacing:.15em;
text-align:center;text-transform:uppercase}
.scopes{list-style:none;margin:0 0 1rem;padding:0;border:1px solid var(--hair);border-radius:.5rem;overflow:hidden}
.scopes li{padding:.5rem .85rem;border-top:1px solid var(--hair)}.scopes li:first-child{border-top:0}
.scopes li.far{border-left:.3rem solid var(--bad);padding-left:.55rem}
.scopes code{display:block;color:var(--soft)}
.mark{font-size:.85rem;font-weight:650;color:var(--bad)}
.area{font-size:1rem;margin:0 0 .35rem}.count{color:var(--soft);font-weight:400}
.count::before{content:"("}.count::after{content:")"}
.who{margin-bottom:.75rem}.sum{margin:1rem 0 .75rem}.after{margin:1.25rem 0 1.5rem}
button.link{display:inline;width:auto;min-height:1.5rem;padding:0;margin:0;border:0;background:none;color:var(--accent);
font-weight:inherit;text-decoration:underline}button.link:hover{background:none;color:var(--accent-deep)}
.spaced{margin-top:1.25rem}
.usercode{font:650 1.75rem/1.3 var(--mono);letter-spacing:.12em;
text-align:center;background:var(--ground);border-radius:.5rem;padding:.75rem;margin:0 0 1.25rem}
.done{color:var(--good)}
.or{display:flex;align-items:center;gap:.75rem;color:var(--soft);margin:1.5rem 0 1rem}
.or::before,.or::after{content:"";flex:1;border-top:1px solid var(--hair)}
[role=status]:not(:empty){margin:.75rem 0 0}
form[hidden],.or[hidden]{display:none}
details{margin:1.25rem 0 0}summary{cursor:pointer;color:var(--accent);font-weight:600;padding:.35rem 0}
.qr{background:#fff;border-radius:.5rem;padding:.5rem;margin:0 auto 1.25rem;width:12rem}
.qr svg{display:block;width:100%;height:auto}
.secret{font:600 1rem/1.6 var(--mono);
background:var(--ground);border-radius:.5rem;padding:.6rem .75rem;margin:0 0 1.25rem}
.codes{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(11.5rem,100%),1fr));gap:.4rem 1rem;list-style:none;
margin:0 0 1.25rem;padding:1rem;background:var(--ground);border-radius:.5rem;
font:600 1rem/1.5 var(--mono)}
section{border-top:1px solid var(--hair);margin-top:1.75rem;padding-top:1.5rem}
h2{font-size:1.1rem;margin:0 0 .5rem}
.keys{list-style:none;margin:.75rem 0 1rem;padding:0}.keys>li{border:1px solid var(--hair);border-radius:.5rem;
padding:.75rem .85rem;margin:0 0 .6rem}.keys .hint{margin:.1rem 0 0}
.keys details{margin:.35rem 0 0}.keys h3{font-size:1rem;margin:0}.keys .keys{margin:.5rem 0 0}
.keys .keys>li{border-width:1px 0 0;border-radius:0;padding:.6rem 0 .75rem;margin:0}
.keys button.quiet{width:auto;min-height:2.25rem;padding:.25rem .9rem;margin-top:.4rem}
.keys .scopes{margin-bottom:.75rem}.keys .area{margin-top:.5rem}
.notice{border:1px solid var(--good);border-left-width:.35rem;border-radius:.5rem;padding:.75rem 1rem;margin:0 0 1.25rem}
.notice p{margin:0}
`);
/** Of pages about failures that end by themselves. */
export const RETRY_AFTER_SECONDS = 1;

const scriptOf = ({ passkeys, copies }: Page): string | null =>
  passkeys ? PASSKEY_SCRIPT : copies ? COPY_SCRIPT : null;
const WARNING = 'Only type your password on this address. Nobody will ever ask you for it by mail or telephone.';

export const render = (page: Page): string => {
  const script = scriptOf(page);
  return framed({
    title: page.title,
    head: `${ICON_LINK}\n${STYLE.element}`,
    home: '/',
    main: page.body,
    mainAttributes: 'class="card"',
    footer: page.footer ?? WARNING,
    afterwards: script === null ? '' : `<script type="module">${script}</script>\n`,
  });
};

export function headers(page: Page): Record<string, string> {
  const script = scriptOf(page);
  const formAction = ["'self'", ...(page.formTargets ?? [])].join(' ');
  return {
    'content-security-policy': [
      "default-src 'none'",
      `style-src ${STYLE.source}`,
      "img-src 'self'",
      ...(script === null ? [] : [`script-src 'sha256-${hash('sha256', script, 'base64')}'`]),
      `form-action ${formAction}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; '),
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
    ...(page.continueTo ? { refresh: `0; url=${page.continueTo.href}` } : {}),
    ...(page.retryAfterSeconds ? { 'retry-after': String(page.retryAfterSeconds) } : {}),
  };
}

/** CSP source for a form that ends at this redirect address. */
export function formTarget(redirectUri: unknown): string[] {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri) : null;
  if (!url) return [];
  // CSP has no way to write an IPv6 host; private schemes have no host at all.
  return url.protocol !== 'https:' && (url.protocol !== 'http:' || url.hostname.startsWith('['))
    ? [url.protocol]
    : [url.origin];
}
