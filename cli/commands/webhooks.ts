/** `webhooks`: subscriptions, whose events the platform sends to an address. */
import { Option } from '@commander-js/extra-typings';
import { DELIVERY_STATUSES } from '../../contracts/events.ts';
import type { OperationOutput } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';
import type { Answer } from '../http/api.ts';
import { counted } from '../output/values.ts';

type Subscription = OperationOutput<'events.subscriptions.get'>;
type SubscriptionWithSecret = OperationOutput<'events.subscriptions.create'>;

export function addWebhooks(program: Program): void {
  const webhooks = addGroup(program, 'webhooks', 'events that the platform sends to an https address');
  addReads(webhooks);
  addSettings(webhooks);
  addDeliveries(webhooks);
}

function addReads(webhooks: Group): void {
  webhooks
    .command('list')
    .description('list your subscriptions, newest first')
    .option('--take <number>', `subscriptions per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { take, cursor }) => {
        const answer = await (await run.api()).call('events.subscriptions.list', {
          query: { ...(take ? { take } : {}), ...(cursor ? { cursor } : {}) },
        });
        const { records, nextCursor } = answer.body;
        run.output.result(answer, () => {
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'State' },
              { title: 'Name' },
              { title: 'Address' },
              { title: 'Types' },
            ],
            records.map(({ subscriptionId, state, name, url, eventTypes }) => [
              subscriptionId,
              state,
              name,
              url,
              eventTypes.join(', '),
            ]),
          );
          if (nextCursor) run.output.note(`There are more: --cursor ${nextCursor}`);
        });
      }),
    );
  webhooks
    .command('get')
    .description('show a subscription')
    .argument('<id>')
    .action(
      act(async (run, subscriptionId) => {
        const answer = await (await run.api()).call('events.subscriptions.get', { path: { subscriptionId } });
        run.output.result(answer, () => run.output.pairs(settingsOf(answer.body)));
      }),
    );
}

function addSettings(webhooks: Group): void {
  webhooks
    .command('create')
    .description('have events sent from now on; prints the secret that signs them, once')
    .requiredOption('--name <name>', 'for people')
    .requiredOption('--url <url>', 'a public https address')
    .requiredOption('--types <types>', 'types of events, separated by commas', list)
    .option('--objects <objects>', 'only about records of these objects, separated by commas', list)
    .addOption(
      new Option('--payload <payload>', 'full: with the values before and after').choices(['thin', 'full'] as const),
    )
    .action(
      act(async (run, { name, url, types, objects, payload }) => {
        const body = {
          name,
          url,
          eventTypes: types,
          ...(objects ? { objects } : {}),
          ...(payload ? { payload } : {}),
        };
        const api = await run.api();
        showSecret(run, await api.call('events.subscriptions.create', { body }, { what: 'The creation' }));
      }),
    );
  webhooks
    .command('rotate')
    .description('replace the secret, and print the new one, once; for 24 hours both sign')
    .argument('<id>')
    .action(
      act(async (run, subscriptionId) => {
        const api = await run.api();
        const path = { subscriptionId };
        showSecret(run, await api.call('events.subscriptions.rotateSecret', { path }, { what: 'The rotation' }));
      }),
    );
  webhooks
    .command('pause')
    .description('send nothing until it is activated; events wait for seven days')
    .argument('<id>')
    .action(act((run, id) => change(run, id, 'paused')));
  webhooks
    .command('activate')
    .description('end a pause or a suspension, and send what has waited')
    .argument('<id>')
    .action(act((run, id) => change(run, id, 'active')));
  webhooks
    .command('delete')
    .description('end a subscription; its deliveries are forgotten')
    .argument('<id>')
    .action(
      act(async (run, subscriptionId) => {
        const input = { path: { subscriptionId }, headers: { ifMatch: await versionOf(run, subscriptionId) } };
        const answer = await (await run.api()).call('events.subscriptions.delete', input, { what: 'The deletion' });
        const { terminal } = run.output;
        run.output.result(answer, () =>
          run.output.line(terminal.pretty ? `Deleted ${subscriptionId}` : subscriptionId),
        );
      }),
    );
}

function addDeliveries(webhooks: Group): void {
  webhooks
    .command('test')
    .description('send an event events.subscription.tested; prints the id of its delivery')
    .argument('<id>')
    .action(
      act(async (run, subscriptionId) => {
        const answer = await (await run.api()).call('events.subscriptions.test', { path: { subscriptionId } });
        run.output.result(answer, () => {
          run.output.line(answer.body.deliveryId);
          run.output.note(`What becomes of it: erp webhooks deliveries ${subscriptionId}`);
        });
      }),
    );
  webhooks
    .command('deliveries')
    .description('list deliveries, newest events first')
    .argument('<id>')
    .addOption(new Option('--status <status>', 'only these').choices(DELIVERY_STATUSES))
    .option('--take <number>', `deliveries per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, subscriptionId, { status, take, cursor }) => {
        const answer = await (await run.api()).call('events.deliveries.list', {
          path: { subscriptionId },
          query: { ...(status ? { status } : {}), ...(take ? { take } : {}), ...(cursor ? { cursor } : {}) },
        });
        const { records, nextCursor } = answer.body;
        run.output.result(answer, () => {
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'Status' },
              { title: 'Type' },
              { title: 'Attempts', right: true },
              { title: 'Last attempt' },
              { title: 'Next attempt' },
              { title: 'About' },
            ],
            records.map(({ deliveryId, status, eventType, attempts, nextAttemptAt, subject }) => {
              const last = attempts.at(-1);
              return [
                deliveryId,
                status,
                eventType,
                String(attempts.length),
                last ? (last.failure ?? `${last.status}, ${last.latencyMs} ms`) : '',
                nextAttemptAt ?? '',
                subject,
              ];
            }),
          );
          if (nextCursor) run.output.note(`There are more: --cursor ${nextCursor}`);
        });
      }),
    );
  webhooks
    .command('replay')
    .description('send earlier events again')
    .argument('<id>')
    .option('--from-time <time>', 'from then on, such as 2026-11-21T00:00:00Z')
    .option('--only-failed', 'only those whose last attempt has failed')
    .action(
      act(async (run, subscriptionId, { fromTime, onlyFailed }) => {
        const answer = await (await run.api()).call('events.subscriptions.replay', {
          path: { subscriptionId },
          body: { ...(fromTime ? { fromTime } : {}), ...(onlyFailed ? { onlyFailed } : {}) },
        });
        const { events } = answer.body;
        const what = events === null ? 'The events are' : counted(events, 'event is', 'events are');
        run.output.result(answer, () => run.output.line(`${what} sent again.`));
      }),
    );
}

const list = (text: string): string[] => text.split(',').map((item) => item.trim());

async function versionOf(run: Run, subscriptionId: string): Promise<string> {
  const { headers } = await (await run.api()).call('events.subscriptions.get', { path: { subscriptionId } });
  return headers.get('etag') ?? '';
}

async function change(run: Run, subscriptionId: string, state: 'active' | 'paused'): Promise<void> {
  const headers = { ifMatch: await versionOf(run, subscriptionId) };
  const input = { path: { subscriptionId }, body: { state }, headers };
  const answer = await (await run.api()).call('events.subscriptions.update', input, { what: 'The change' });
  const { terminal } = run.output;
  run.output.result(answer, () => run.output.line(terminal.pretty ? `${subscriptionId} is ${state}.` : subscriptionId));
}

type Pairs = (readonly [string, string])[];

const settingsOf = (subscription: Subscription): Pairs => [
  ['id', subscription.subscriptionId],
  ['name', subscription.name],
  ['url', subscription.url],
  ['types', subscription.eventTypes.join(', ')],
  ...(subscription.objects.length > 0 ? ([['objects', subscription.objects.join(', ')]] as const) : []),
  ['payload', subscription.payload],
  ['ordering', subscription.ordering],
  ['state', subscription.state],
  ...(subscription.reason ? ([['reason', subscription.reason]] as const) : []),
  ['failed attempts', String(subscription.failureCount)],
  ['cursor', subscription.cursor],
];

function showSecret({ output }: Run, answer: Answer<SubscriptionWithSecret>): void {
  const { subscriptionId, secret, publicKey } = answer.body;
  output.result(answer, () =>
    output.pairs([['id', subscriptionId], publicKey === null ? ['secret', secret ?? ''] : ['public key', publicKey]]),
  );
  output.note(
    publicKey !== null
      ? 'Your receiver verifies with the public key.'
      : secret
        ? 'Store the secret where your receiver reads it: it is not shown again.'
        : `The secret was in an earlier answer. For a new one: erp webhooks rotate ${subscriptionId}`,
  );
}
