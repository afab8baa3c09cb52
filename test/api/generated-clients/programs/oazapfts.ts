/** The program with oazapfts. */
import {
  dataRecordsCheck,
  dataRecordsCreate,
  dataRecordsDelete,
  dataRecordsGet,
  dataRecordsList,
  dataRecordsUpdate,
  defaults,
} from '../generated/oazapfts.ts';
import { newKey, type Outcome, type Task } from './program.ts';

export async function run({ baseUrl, token, city, runId }: Task): Promise<Outcome> {
  defaults.baseUrl = baseUrl;
  defaults.headers = { authorization: `Bearer ${token}` };

  const listed = await dataRecordsList('Account', {
    where: JSON.stringify({ city }),
    sort: JSON.stringify([{ id: 'name', desc: true }]),
  });
  if (listed.status !== 200) throw new Error(listed.data.message);

  const checked = await dataRecordsCheck('Contact', { operation: 'create', fields: { name: '' } });
  if (checked.status !== 200) throw new Error(checked.data.message);

  const contact = { name: 'Generated', lastName: 'Generated' };
  const created = await dataRecordsCreate('Contact', newKey(), contact);
  if (created.status !== 201) throw new Error('The record was not created.');
  const { id } = created.data;
  const etag = created.headers.get('ETag') ?? '';

  const update = (jobTitle: string, ifMatch: string) =>
    dataRecordsUpdate('Contact', id, newKey(), ifMatch, { jobTitle });
  await update('Clerk', etag);
  const refused = await update('Buyer', etag);
  const current = await dataRecordsGet('Contact', id);
  const updated = await update('Buyer', current.headers.get('ETag') ?? '');
  if (updated.status !== 200) throw new Error(updated.data.message);

  const deleted = await dataRecordsDelete('Contact', id, newKey(), updated.headers.get('ETag') ?? '', {
    xAgentRunId: runId,
  });
  if (deleted.status === 200) throw new Error('The deletion did not wait.');
  const { approvalId, fingerprint } = deleted.data.details ?? {};

  return {
    names: listed.data.records.map((record) => record['name']),
    violations: checked.data.errors.map(({ code }) => code),
    refusal: refused.status === 412 ? refused.data.code : undefined,
    jobTitle: updated.data['jobTitle'],
    approval: { approvalId, fingerprint },
  };
}
