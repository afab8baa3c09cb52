/** A desk for invoices: sign-in, a list, a form with errors beside its fields, actions, a figure of a dashboard. */
import { connect, ErpError, signInInBrowser, type Versioned } from '@erp-platform/client';
import type { Objects } from './generated/objects.ts';

const { baseUrl = '', clientId = '' } = document.body.dataset;
const scope = 'data:read data:write actions:read actions:execute analytics:read analytics:run';
const erp = connect<Objects>({ baseUrl, token: await signInInBrowser({ baseUrl, clientId, scope }) });
const invoices = erp.object('Invoice__c');

/** The list: the drafts, newest first. */
async function showDrafts(): Promise<void> {
  const drafts = invoices.list({
    fields: ['name', 'Amount__c', 'DueDate__c'],
    where: { Status__c: 'draft' },
    sort: ['-createdAt'],
  });
  const rows = [];
  for await (const one of drafts) rows.push(row([one.name, one.Amount__c, one.DueDate__c], () => showActions(one)));
  fill('#drafts', rows);
}

/** The form: creates an invoice, or shows beside each field what is wrong with it. */
async function save(form: HTMLFormElement): Promise<void> {
  const text = (name: string) => String(new FormData(form).get(name) ?? '');
  try {
    await invoices.create({ AccountId__c: text('AccountId__c'), Amount__c: text('Amount__c') });
    form.reset();
  } catch (error) {
    if (!(error instanceof ErpError)) throw error;
    for (const output of form.querySelectorAll('output')) output.value = error.byField[output.name]?.join(' ') ?? '';
  }
}

/** What can be done with an invoice, and why something cannot. */
async function showActions(invoice: Versioned): Promise<void> {
  const transitions = await invoices.transitions(invoice);
  const buttons = transitions.map(({ transitionKey, label, available, unavailableReasons, requiresComment }) => {
    const act = button(label, async () => {
      const comment = requiresComment ? (prompt(label) ?? '') : undefined;
      await invoices.execute(invoice, transitionKey, { comment });
      fill('#actions', []);
      await showDrafts();
    });
    act.disabled = !available;
    act.title = unavailableReasons.map(({ message }) => message).join(' ');
    return act;
  });
  fill('#actions', buttons);
}

/** A figure of a dashboard: what customers owe. */
async function showOpen(): Promise<void> {
  for await (const { dashboardId } of erp.dashboards.list('Receivables')) {
    const { rows } = await erp.dashboards.run(dashboardId, 'open');
    fill('#open', [rows.map((amount) => amount.join(' ')).join(', ')]);
  }
}

async function showCustomers(): Promise<void> {
  const options = [];
  for await (const { id, name } of erp.object('Account').list({ fields: ['name'], sort: ['name'] }))
    options.push(new Option(name, id));
  fill('select', options);
}

function fill(selector: string, content: (Node | string)[]): void {
  document.querySelector(selector)?.replaceChildren(...content);
}

function row(cells: (string | number | null)[], act: () => Promise<void>): HTMLElement {
  const line = document.createElement('tr');
  for (const cell of cells) line.insertCell().append(String(cell ?? ''));
  line.insertCell().append(button('Act', act));
  return line;
}

function button(label: string, act: () => Promise<void>): HTMLButtonElement {
  const made = document.createElement('button');
  made.textContent = label;
  made.onclick = act;
  return made;
}

// Whatever is not beside a field: a conflict with somebody else, a lost connection, a missing right.
addEventListener('unhandledrejection', ({ reason }) => fill('#problem', [reason.message]));
document.forms[0]?.addEventListener('submit', async (event) => {
  event.preventDefault();
  fill('#problem', []);
  if (document.forms[0]) await save(document.forms[0]);
  await showDrafts();
});
showDrafts();
showOpen();
showCustomers();
