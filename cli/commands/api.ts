/** `api`: any request of the public API, for what no other command does. */
import { Argument, Option } from '@commander-js/extra-typings';
import { act, type Program } from '../command.ts';
import { readData } from '../data/assignments.ts';
import { usage } from '../failure.ts';
import { parseExact } from '../http/json.ts';

const METHODS = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'] as const;

/** Headers that the program sets itself. */
const OWN: ReadonlySet<string> = new Set(['authorization', 'host', 'content-length', 'idempotency-key']);

export function addApi(program: Program): void {
  program
    .command('api')
    .description('send a request to the API as you write it')
    .addArgument(new Argument('<method>', 'its method').choices(METHODS))
    .argument('<path>', 'its path and query below /api/v1, such as /identity')
    .option('-d, --data <json>', 'its body: JSON, @file or - for standard input')
    .addOption(
      new Option('-H, --header <header>', 'a header, such as \'If-Match: "3"\'; may be repeated')
        .argParser((text: string, before: Record<string, string> | undefined) => ({ ...before, ...headerOf(text) }))
        .default(undefined),
    )
    .action(
      act(async (run, method, path, options) => {
        const body = options.data === undefined ? undefined : await readData(options.data);
        const api = await run.api();
        const reply = await api.send({ method, path, body, headers: options.header ?? {} });
        run.output.result(reply, () => {
          if (reply.text === '') return;
          const isJson = /\bjson\b/.test(reply.headers.get('content-type') ?? '');
          const shown =
            isJson && run.output.terminal.pretty ? JSON.stringify(parseExact(reply.text), null, 2) : reply.text;
          run.output.data(shown);
        });
      }),
    );
}

function headerOf(text: string): Record<string, string> {
  const [, name = '', value = ''] = /^([\w-]+):\s*(.*)$/s.exec(text) ?? [];
  if (name === '') throw usage(`${text} is no header.`, 'Write for example: --header \'If-Match: "3"\'.');
  if (OWN.has(name.toLowerCase())) throw usage(`${name} is set by the program itself.`);
  return { [name.toLowerCase()]: value };
}
