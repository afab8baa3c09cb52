/**
 * A mail as text and as HTML: the look of the sign-in pages in what mail programs understand, which is tables and styles
 * at each element; those that can, show it dark. Nothing is loaded from anywhere.
 */
import { escapeHtml } from '../../../lib/values/html.ts';
import type { Language, MailText, MailValues } from './languages/language.ts';

interface Rendered {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

const FONT = 'system-ui,-apple-system,&quot;Segoe UI&quot;,Roboto,&quot;Noto Sans&quot;,sans-serif';
const WIDTH_PX = 560;

/** Only what cannot be said at an element: another colour scheme. */
const STYLE = `:root{color-scheme:light dark;supported-color-schemes:light dark}
@media(prefers-color-scheme:dark){.ground{background:#10161c!important}.card{background:#19222b!important;border-color:#2c3843!important}
.ink{color:#eaf0f5!important}.soft{color:#a9b6c2!important}.button{background:#6fc0ee!important}.button a{color:#06202f!important}
.sunken{background:#232e39!important}a{color:#6fc0ee!important}}
@media(max-width:480px){.card{padding:20px!important}.fact td{display:block!important;padding:2px 0!important}}`;

const INK = 'color:#16212c';
const SOFT = 'color:#4c5a68';

export function render(language: Language, content: MailText, values: MailValues, link: string | null): Rendered {
  const greeting = language.greeting(values.name);
  const footer = content.footer ?? language.footer(values);
  return {
    subject: content.subject,
    text: asText({ language, content, greeting, footer, link }),
    html: asHtml({ language, content, greeting, footer, link, unsubscribe: values.unsubscribe }),
  };
}

interface Parts {
  readonly language: Language;
  readonly content: MailText;
  readonly greeting: string;
  readonly footer: string;
  readonly link: string | null;
  /** An address in the texts that is a link where there are links. */
  readonly unsubscribe: string | null;
}

const factsOf = ({ facts = [] }: MailText) =>
  facts.filter((fact): fact is readonly [name: string, value: string] => fact[1] !== null);

function asText({ content, greeting, footer, link }: Omit<Parts, 'unsubscribe'>): string {
  const facts = factsOf(content)
    .map(([name, value]) => `  ${name}: ${value}`)
    .join('\n');
  const button = content.button && link ? `${content.button}:\n${link}` : '';
  const blocks = [greeting, ...content.before, facts, button, ...content.after, `-- \n${footer}`];
  return `${blocks.filter(Boolean).join('\n\n')}\n`;
}

function asHtml({ language, content, greeting, footer, link, unsubscribe }: Parts): string {
  const linked = (text: string): string =>
    unsubscribe === null
      ? escapeHtml(text)
      : text
          .split(unsubscribe)
          .map(escapeHtml)
          .join(`<a href="${escapeHtml(unsubscribe)}" style="color:#0b5c8a">${escapeHtml(unsubscribe)}</a>`);
  const paragraph = (text: string, style = INK): string =>
    `<p class="${style === INK ? 'ink' : 'soft'}" style="margin:0 0 16px;${style}">${linked(text)}</p>`;
  const facts = factsOf(content)
    .map(
      ([name, value]) =>
        `<tr class="fact"><td class="soft" style="padding:4px 16px 4px 0;${SOFT};vertical-align:top;white-space:nowrap">${escapeHtml(name)}</td>` +
        `<td class="ink" style="padding:4px 0;${INK};font-weight:600;word-break:break-word">${escapeHtml(value)}</td></tr>`,
    )
    .join('\n');
  const table = facts
    ? `<table role="presentation" class="sunken" cellpadding="0" cellspacing="0" width="100%"
style="margin:0 0 20px;background:#eef1f4;border-radius:8px"><tr><td style="padding:12px 16px">
<table role="presentation" cellpadding="0" cellspacing="0">${facts}</table></td></tr></table>`
    : '';
  const button =
    content.button && link
      ? `<table role="presentation" cellpadding="0" cellspacing="0" style="margin:0 0 16px"><tr>
<td class="button" style="background:#0b5c8a;border-radius:8px"><a href="${escapeHtml(link)}"
style="display:inline-block;padding:13px 24px;color:#ffffff;font-weight:650;text-decoration:none">${escapeHtml(content.button)}</a></td>
</tr></table>
<p class="soft" style="margin:0 0 20px;font-size:14px;${SOFT}">${escapeHtml(language.linkBelow)}<br>
<a href="${escapeHtml(link)}" style="color:#0b5c8a;word-break:break-all">${escapeHtml(link)}</a></p>`
      : '';
  return `<!doctype html>
<html lang="${language.tag}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml(content.subject)}</title><style>${STYLE}</style></head>
<body class="ground" style="margin:0;background:#eef1f4">
<table role="presentation" class="ground" width="100%" cellpadding="0" cellspacing="0" style="background:#eef1f4">
<tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:${WIDTH_PX}px">
<tr><td class="card ink" style="background:#ffffff;border:1px solid #d9e0e6;border-radius:12px;padding:32px;
font:16px/1.5 ${FONT};${INK};word-break:break-word">
<h1 class="ink" style="margin:0 0 16px;font-size:24px;line-height:1.25;font-weight:650;${INK}">${escapeHtml(content.title)}</h1>
${paragraph(greeting)}
${content.before.map((text) => paragraph(text)).join('\n')}
${table}${button}
${content.after.map((text) => paragraph(text, SOFT)).join('\n')}
</td></tr>
<tr><td class="soft" style="padding:16px 8px;font:13px/1.5 ${FONT};${SOFT}">${escapeHtml(footer)}</td></tr>
</table>
</td></tr></table>
</body>
</html>
`;
}
