/** `events`: what happens in the tenant, on the terminal or sent to a program on this machine. */
import { Option } from '@commander-js/extra-typings';
import type { CloudEvent } from '../../contracts/events.ts';
import { isObject } from '../../lib/json/objects.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { recordOf } from '../data/records.ts';
import { followEvents } from '../events/follow.ts';
import { forward, newSecret } from '../events/forward.ts';
import { usage } from '../failure.ts';
import { isLoopback } from '../http/transport.ts';
import { plain } from '../output/table.ts';
import { valueText } from '../output/values.ts';

export function addEvents(program: Program): void {
  const events = addGroup(program, 'events', 'what happens in the tenant, as it happens');
  following(events, 'tail', 'print events until Ctrl-C').action(
    act((run, options) => followEvents(run, options, (event) => show(run, event))),
  );
  following(events, 'listen', 'send events to a program on this machine as webhooks')
    .requiredOption('--forward <url>', 'address on this machine, such as http://localhost:4000/hooks', localUrl)
    .option('--secret <secret>', 'sign with this secret, whsec_… (default: a new one)', signingSecret)
    .action(
      act(async (run, { forward: url, secret = newSecret(), ...options }) => {
        run.output.note(`Events go to ${url.href}, signed with the secret ${secret}`);
        await followEvents(run, options, (event) => deliver(run, url, secret, event));
      }),
    );
}

const following = (events: Group, name: string, description: string) =>
  events
    .command(name)
    .description(description)
    .option('--types <types>', 'only these types, separated by commas')
    .option('--objects <objects>', 'only about records of these objects, separated by commas')
    .addOption(
      new Option('--payload <payload>', 'full: with the values before and after').choices(['thin', 'full'] as const),
    )
    .option('--cursor <cursor>', 'go on where an earlier command ended')
    .option('--from-start', 'begin with the oldest event that is kept')
    .option('--no-follow', 'end with the newest event');

/** A token for events must not carry them to other machines by a mistyped address. */
function localUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || !isLoopback(url))
    throw usage(
      `--forward: ${text} is no address of this machine.`,
      'It is http://localhost:PORT/path. Systems elsewhere get events by a subscription: erp webhooks create',
    );
  return url;
}

function signingSecret(text: string): string {
  if (!/^whsec_[A-Za-z0-9+/]{24,}={0,2}$/.test(text))
    throw usage('--secret takes whsec_ and at least 24 characters of Base64.');
  return text;
}

function show({ output }: Run, event: CloudEvent): void {
  if (output.json) output.data(JSON.stringify(event));
  else row(output, [event.time, event.type, event.subject, changesOf(event)]);
}

/** Names of the changed fields, with their values where the event has them. */
function changesOf({ data }: CloudEvent): string {
  const { changedFields, before, after } = recordOf(data);
  if (!Array.isArray(changedFields)) return '';
  if (!isObject(before) && !isObject(after)) return changedFields.join(', ');
  const value = (side: unknown, field: string): string => (isObject(side) ? valueText(side[field]) : '');
  return changedFields.map((field) => `${field}: ${value(before, field)} → ${value(after, field)}`).join(', ');
}

async function deliver({ output }: Run, url: URL, secret: string, event: CloudEvent): Promise<void> {
  const { status, latencyMs, failure } = await forward(url, secret, event);
  const { id, type, subject } = event;
  output.value({ id, type, subject, status, latencyMs, failure }, () =>
    row(output, [status === null ? (failure ?? '') : String(status), `${latencyMs} ms`, type, subject]),
  );
}

/** A line of a list without an end, whose columns cannot be measured. */
const row = (output: Run['output'], cells: readonly string[]): void =>
  output.line(cells.map(plain).join(output.terminal.pretty ? '  ' : '\t'));
