/**
 * Design of all pages of the platform: light and dark, phone and paper. Every page takes `DESIGN`, and of
 * the parts below it those that it uses, so that none loads more than it needs. Nothing moves, so that nothing has to
 * stop for those who ask for less motion; what a library brings along is stopped here.
 */

/** Colours, type, focus, and the frame of page-frame.ts. `--width` is that of a text that one reads. */
export const DESIGN = `
:root{color-scheme:light dark;--ground:#eef1f4;--card:#fff;--sunken:#e2e7ec;--ink:#16212c;--soft:#4c5a68;--line:#7f8d9b;
--hair:#d9e0e6;--accent:#0b5c8a;--accent-ink:#fff;--accent-deep:#084a70;--bad:#a3191f;--bad-ground:#fdf0f0;--good:#1b6b3a;
--width:46rem;--mono:ui-monospace,"SF Mono",Menlo,Consolas,monospace}
@media(prefers-color-scheme:dark){:root{--ground:#10161c;--card:#19222b;--sunken:#232e39;--ink:#eaf0f5;--soft:#a9b6c2;
--line:#71808e;--hair:#2c3843;--accent:#6fc0ee;--accent-ink:#06202f;--accent-deep:#97d3f5;--bad:#ff9a9a;
--bad-ground:#3a1b1e;--good:#7fd6a0}}
*{box-sizing:border-box}
html{background:var(--ground);color:var(--ink);-webkit-text-size-adjust:100%;text-size-adjust:100%;
font:100%/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
body{margin:0;min-height:100vh;min-height:100dvh;display:flex;flex-direction:column;align-items:center;
padding:0 clamp(1rem,4vw,2rem)}
body>header,body>main,body>footer{width:100%;max-width:var(--width)}
body>header{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:.25rem 1.5rem;padding:1rem 0}
.brand{display:flex;align-items:center;gap:.6rem;color:inherit;font-weight:650;letter-spacing:.01em;text-decoration:none}
.brand svg{width:1.75rem;height:1.75rem;flex:none}
body>header nav{display:flex;flex-wrap:wrap;gap:0 clamp(.9rem,2vw,1.25rem);color:var(--soft);font-size:.925rem}
body>header nav>*{padding:.3rem 0}
body>header .together{display:flex;gap:inherit}
[aria-current]{color:var(--ink);font-weight:650}
body>main{padding-bottom:2rem}main:focus{outline:none}
body>footer{margin-top:auto;color:var(--soft);font-size:.85rem;padding:1rem 0}
.skip{position:absolute;left:1rem;top:-4rem;z-index:1;background:var(--card);padding:.5rem 1rem;
border-radius:0 0 .5rem .5rem}.skip:focus{top:0}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 .35rem;font-weight:650;letter-spacing:-.01em;overflow-wrap:break-word}
p{margin:0 0 1rem}
a{color:var(--accent)}
.lead{color:var(--soft)}
code{font:.85em/1.4 var(--mono);overflow-wrap:break-word}
.card{background:var(--card);border:1px solid var(--hair);border-radius:.75rem;padding:clamp(1.25rem,4vw,2rem)}
.visually-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
@media(forced-colors:active){.card{border-color:CanvasText}button{border-color:ButtonText}}
@media(prefers-reduced-motion:reduce){*,::before,::after{animation:none!important;transition:none!important;
scroll-behavior:auto!important}}
@media print{:root{color-scheme:light;--ground:#fff;--card:#fff;--sunken:#f2f2f2;--ink:#000;--soft:#333;--hair:#999;
--accent:#000;--good:#000;--bad:#000;--bad-ground:#fff}body{display:block;padding:0}.skip,body>header nav,button{display:none}
.card{padding:0;border:0}h1,h2,h3{break-after:avoid}}
`;

/** Fields, buttons, and what went wrong with them. */
export const FORMS = `
input,select{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:.5rem;
padding:.65rem .75rem;min-height:2.75rem}
input{width:100%}
button{font:inherit;font-weight:650;width:100%;min-height:2.9rem;padding:.6rem 1rem;border-radius:.5rem;
border:1px solid transparent;cursor:pointer;background:var(--accent);color:var(--accent-ink)}
button:hover{background:var(--accent-deep)}
button.quiet{background:transparent;color:var(--ink);border-color:var(--line);margin-top:.75rem}
button.quiet:hover{background:var(--ground)}
.problem{border:1px solid var(--bad);border-left-width:.35rem;background:var(--bad-ground);border-radius:.5rem;
padding:.75rem 1rem;margin:0 0 1.25rem}
.problem h2{font-size:1rem;margin:0;color:var(--bad)}.problem p{margin:.15rem 0 0}
.problem ul{margin:.35rem 0 0;padding-inline-start:1.25rem}
.problem:focus-visible{outline-offset:3px}
`;

/**
 * Tables; `.scroll` around one that may be wider than the page, which takes the focus (`tabindex="0"`, a label). Shades
 * at its edges say that there is more: the first two layers move with the content and cover them at its ends. On a phone
 * columns keep a width in which their text can be read.
 */
export const TABLES = `
.scroll{overflow-x:auto;margin:0 0 1rem;--cover:linear-gradient(var(--ground),var(--ground));--more:rgb(127 127 127/.4);
background:var(--cover) left/1rem 100% no-repeat local,var(--cover) right/1rem 100% no-repeat local,
linear-gradient(to right,var(--more),transparent) left/.5rem 100% no-repeat,
linear-gradient(to left,var(--more),transparent) right/.5rem 100% no-repeat}
table{width:100%;border-collapse:collapse;font-size:.925rem}
th,td{padding:.4rem .75rem;border-bottom:1px solid var(--hair);text-align:start;vertical-align:top}
th:first-child,td:first-child{padding-inline-start:.25rem}
thead th{color:var(--soft);font-weight:600}
tbody th{font-weight:500}
tr{break-inside:avoid}
@media(max-width:48rem){.scroll :is(th,td){padding-inline:.25rem .5rem}.scroll td:last-child:not(:first-child){min-width:10rem}}
`;

/** A text of several sections: headings, lists, quotations and code. */
export const PROSE = `
main h2{font-size:1.3rem;line-height:1.3;margin:2.25rem 0 .5rem;font-weight:650;overflow-wrap:break-word}
main h3{font-size:1.075rem;margin:1.75rem 0 .35rem;font-weight:650;overflow-wrap:break-word}
main h4{font-size:1rem;margin:1.5rem 0 .25rem}
main :is(ul,ol){margin:0 0 1rem;padding-inline-start:1.4rem}
main li{margin:.2rem 0}main li>:is(ul,ol){margin:0}
main dt{font-weight:600}main dd{margin:0 0 .6rem}
blockquote{margin:0 0 1rem;padding-inline-start:1rem;border-inline-start:.25rem solid var(--line);color:var(--soft)}
hr{border:0;border-top:1px solid var(--hair);margin:2rem 0}
:not(pre)>code{background:var(--sunken);border-radius:.25rem;padding:.1em .3em;-webkit-box-decoration-break:clone;
box-decoration-break:clone}
pre{background:var(--card);border:1px solid var(--hair);border-radius:.5rem;padding:.8rem 1rem;margin:0 0 1rem;
overflow-x:auto;font:.875rem/1.5 var(--mono)}
pre code{font:inherit}
@media print{pre{white-space:pre-wrap;overflow-wrap:anywhere;break-inside:avoid}}
`;

/** Code that highlight.js has marked. */
export const HIGHLIGHTED = `
:root{--code-figure:#8a4008;--code-name:#6b3aa0}
@media(prefers-color-scheme:dark){:root{--code-figure:#f5b47a;--code-name:#cbb2f8}}
@media print{:root{--code-figure:#000;--code-name:#000}}
:is(.hljs-keyword,.hljs-built_in,.hljs-literal,.hljs-selector-tag,.hljs-tag,.hljs-type){color:var(--accent)}
:is(.hljs-string,.hljs-regexp,.hljs-addition){color:var(--good)}
:is(.hljs-number,.hljs-symbol,.hljs-bullet,.hljs-link){color:var(--code-figure)}
:is(.hljs-attr,.hljs-attribute,.hljs-name,.hljs-property,.hljs-section,.hljs-title,.hljs-variable){color:var(--code-name)}
:is(.hljs-comment,.hljs-meta,.hljs-quote){color:var(--soft)}
.hljs-deletion{color:var(--bad)}
`;

export const MARK = `<svg viewBox="0 0 28 28" aria-hidden="true" focusable="false">
<rect width="28" height="28" rx="7" fill="currentColor" opacity=".12"/>
<path d="M7 8h14M7 14h9M7 20h14" stroke="currentColor" stroke-width="2.6" stroke-linecap="round"/>
</svg>`;

/** Link to the notifications in the header, with the unread count. */
export const BELL_STYLE = `
#bell{display:inline-flex;align-items:center;gap:.25rem;text-decoration:none}
#bell svg{width:1.25rem;height:1.25rem;flex:none}
#unread{min-width:1.3rem;padding:0 .35rem;border-radius:.65rem;background:var(--accent);color:var(--accent-ink);
font-size:.8rem;font-weight:650;line-height:1.3rem;text-align:center;font-variant-numeric:tabular-nums}
@media(forced-colors:active){#unread{border:1px solid LinkText}}
`;
export const BELL = `<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">
<path d="M6 17V11a6 6 0 0 1 12 0v6l1.5 1.5h-15zM10 21h4" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>
</svg>`;

/** The mark as a file of its own, to be told from others in a row of tabs, light or dark. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28">
<rect width="28" height="28" rx="7" fill="#0b5c8a"/>
<path d="M7 8h14M7 14h9M7 20h14" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/>
</svg>
`;
