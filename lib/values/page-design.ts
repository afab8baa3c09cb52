/** What all pages of the platform look like: colours, type and focus, in light and dark, and the mark in the header. */

export const DESIGN = `
:root{color-scheme:light dark;--ground:#eef1f4;--card:#fff;--ink:#16212c;--soft:#4c5a68;--line:#8593a1;--hair:#d9e0e6;
--accent:#0b5c8a;--accent-ink:#fff;--accent-deep:#084a70;--bad:#a3191f;--bad-ground:#fdf0f0;--good:#1b6b3a}
@media(prefers-color-scheme:dark){:root{--ground:#10161c;--card:#19222b;--ink:#eaf0f5;--soft:#a9b6c2;--line:#71808e;
--hair:#2c3843;--accent:#6fc0ee;--accent-ink:#06202f;--accent-deep:#97d3f5;--bad:#ff9a9a;--bad-ground:#3a1b1e;
--good:#7fd6a0}}
*{box-sizing:border-box}
html{background:var(--ground);color:var(--ink);
font:100%/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .35rem;font-weight:650;letter-spacing:-.01em}
p{margin:0 0 1rem}
a{color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
input{width:100%;font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:.5rem;
padding:.65rem .75rem;min-height:2.75rem}
button{font:inherit;font-weight:650;width:100%;min-height:2.9rem;padding:.6rem 1rem;border-radius:.5rem;
border:1px solid transparent;cursor:pointer;
background:var(--accent);color:var(--accent-ink)}
button:hover{background:var(--accent-deep)}
button.quiet{background:transparent;color:var(--ink);border-color:var(--line);margin-top:.75rem}
button.quiet:hover{background:var(--ground)}
code{font:.85em/1.4 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
.problem{border:1px solid var(--bad);border-left-width:.35rem;background:var(--bad-ground);border-radius:.5rem;
padding:.75rem 1rem;margin:0 0 1.25rem}
.problem h2{font-size:1rem;margin:0;color:var(--bad)}.problem p{margin:.15rem 0 0}
.problem:focus-visible{outline-offset:3px}
.visually-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media(forced-colors:active){button{border-color:ButtonText}}
`;

export const MARK = `<svg viewBox="0 0 28 28" aria-hidden="true" focusable="false">
<rect width="28" height="28" rx="7" fill="currentColor" opacity=".12"/>
<path d="M7 8h14M7 14h9M7 20h14" stroke="currentColor" stroke-width="2.6" stroke-linecap="round"/>
</svg>`;
