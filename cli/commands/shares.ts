/** `data shares`: to whom a record was opened by hand. */
import { Option } from '@commander-js/extra-typings';
import type { OperationOutput } from '../../contracts/operations.ts';
import { act, type Group, type Run } from '../command.ts';
import { namesOf, userIdOf } from '../data/names.ts';
import { EXIT, Failure, usage } from '../failure.ts';
import type { Api } from '../http/api.ts';

type Share = OperationOutput<'data.shares.list'>['records'][number];
type Principal = Pick<Share, 'principalType' | 'principalId'>;

interface Named {
  user?: string | undefined;
  role?: string | undefined;
  group?: string | undefined;
}

const USER = 'a user, by username, address or id';
const ROLE = 'the users of a role and those above, by apiName';
const GROUP = 'the members of a group, by apiName';

export function addShares(data: Group): void {
  const shares = data.command('shares').description('to whom a record was opened by hand');
  shares
    .command('list')
    .description('list the shares of a record')
    .argument('<object>')
    .argument('<id>')
    .action(
      act(async (run, objectApiName, id) => {
        const api = await run.api();
        const answer = await api.call('data.shares.list', { path: { objectApiName, id } });
        const { records } = answer.body;
        const names = run.output.json ? new Map<string, string>() : await peopleOf(api, records);
        run.output.result(answer, () =>
          run.output.table(
            ['With', 'Access', 'Since', 'By', 'Reason'].map((title) => ({ title })),
            records.map((share) => [
              `${share.principalType} ${names.get(share.principalId) ?? share.principalId}`,
              share.access,
              share.createdAt,
              names.get(share.createdById) ?? share.createdById,
              share.reason ?? '',
            ]),
          ),
        );
      }),
    );
  shares
    .command('add')
    .description('open a record to a user, a role or a group')
    .argument('<object>')
    .argument('<id>')
    .option('--user <user>', USER)
    .option('--role <role>', ROLE)
    .option('--group <group>', GROUP)
    .addOption(
      new Option('--access <access>', 'what they may do').choices(['read', 'edit'] as const).default('read' as const),
    )
    .option('--reason <text>', 'why, for those who look at the shares later')
    .action(
      act(async (run, objectApiName, id, { access, reason, ...named }) => {
        const api = await run.api();
        const body = { ...(await principalOf(api, named)), access, ...(reason ? { reason } : {}) };
        const path = { objectApiName, id };
        const answer = await api.call('data.shares.create', { path, body }, { what: 'The share' });
        run.output.result(answer, () => shown(run, `Shared ${objectApiName} ${id} (${access}).`, answer.body.shareId));
      }),
    );
  shares
    .command('remove')
    .description('take a share back')
    .argument('<object>')
    .argument('<id>')
    .option('--user <user>', USER)
    .option('--role <role>', ROLE)
    .option('--group <group>', GROUP)
    .action(
      act(async (run, objectApiName, id, named) => {
        const api = await run.api();
        const path = { objectApiName, id };
        const wanted = await principalOf(api, named);
        const { records } = (await api.call('data.shares.list', { path })).body;
        const found = records.find(
          (share) => share.principalType === wanted.principalType && share.principalId === wanted.principalId,
        );
        if (!found)
          throw new Failure('CLIENT_SHARE', EXIT.error, 'The record is not shared with them by hand.', {
            hint: `See with whom it is: erp data shares list ${objectApiName} ${id}`,
          });
        const { shareId } = found;
        const answer = await api.call('data.shares.delete', { path: { ...path, shareId } }, { what: 'The removal' });
        run.output.result(answer, () => shown(run, `Took the share of ${objectApiName} ${id} back.`, shareId));
      }),
    );
}

const shown = ({ output }: Run, sentence: string, id: string): void =>
  output.line(output.terminal.pretty ? sentence : id);

const peopleOf = (api: Api, shares: readonly Share[]): Promise<Map<string, string>> =>
  namesOf(
    api,
    'User',
    shares.flatMap(({ principalType, principalId, createdById }) =>
      principalType === 'user' ? [principalId, createdById] : [createdById],
    ),
  );

async function principalOf(api: Api, { user, role, group }: Named): Promise<Principal> {
  const given = [user, role, group].filter((one) => one !== undefined);
  if (given.length !== 1) throw usage('Say with whom: one of --user, --role and --group.');
  if (user !== undefined) return { principalType: 'user', principalId: await userIdOf(api, user) };
  if (role !== undefined) return { principalType: 'role', principalId: role };
  return { principalType: 'group', principalId: group ?? '' };
}
