/** The page that hands values on with a form, as soon as it is open; without scripts the person does so. */
import { createHash } from 'node:crypto';
import { headers, type Page } from './layout.ts';

const SCRIPT = 'document.forms[0].submit()';
const SCRIPT_SOURCE = `'sha256-${createHash('sha256').update(SCRIPT).digest('base64')}'`;

/** `action` and `inputs` are HTML already. */
export const passOn = (view: {
  action: string;
  inputs: string;
  formTargets: readonly string[];
  status: number;
}): Page => ({
  title: 'One moment',
  status: view.status,
  formTargets: view.formTargets,
  body: `<h1>One moment</h1>
<p class="lead">You return to your application.</p>
<form method="post" action="${view.action}">
${view.inputs}
<button type="submit">Continue</button>
</form>
<script>${SCRIPT}</script>`,
});

/** Like those of every page, and its one script may run. */
export function passOnHeaders(page: Page): Record<string, string> {
  const common = headers(page);
  return {
    ...common,
    'content-security-policy': `${common['content-security-policy']}; script-src ${SCRIPT_SOURCE}`,
  };
}
