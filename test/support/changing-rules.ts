/**
 * Writers that write without pause while the validation rule of their object changes: each version of the rule lets
 * other amounts in, so that a record says by which version it was let in. What was committed stands in the outbox in the
 * order in which PostgreSQL let writers and deployments have the tenant.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { tenantSchema } from '../../lib/context.ts';
import type { Answer, Api } from './client.ts';
import { deployOverHttp, objectFiles } from './metadata-tenant.ts';

const OBJECT = 'Guarded__c';
/** Amounts that one version of the rule lets in: from ten times its number on. */
const WIDTH = 10;

const ruleFile = (version: number): Record<string, string> => ({
  [`objects/${OBJECT}/validationRules/InRange.yaml`]: [
    'type: ValidationRule',
    'apiName: InRange',
    `object: ${OBJECT}`,
    `condition: record.Amount__c < ${version * WIDTH} || record.Amount__c >= ${(version + 1) * WIDTH}`,
    'errorField: Amount__c',
    `message: Only amounts of version ${version}.`,
    '',
  ].join('\n'),
});

/** The object, with the rule's version 1. */
export const guardedObject = (admin: Api): Promise<void> =>
  deployOverHttp(admin, {
    ...objectFiles(OBJECT, { Amount__c: 'fieldType: integer\nrequired: true' }),
    ...ruleFile(1),
  });

interface Written {
  readonly committed: number;
  readonly refused: number;
  readonly longestMs: number;
  /** Answers that should not have been visible. */
  readonly surprises: readonly string[];
}

/**
 * `versions` deployments of the rule, one after the other, while writers create and change records through each of
 * `apis` in turn.
 */
export async function writeThroughDeployments(
  admin: Api,
  apis: readonly Api[],
  { versions, writers }: { versions: number; writers: number },
): Promise<Written> {
  let version = 1;
  let working = true;
  let [committed, refused, longestMs] = [0, 0, 0];
  const surprises: string[] = [];
  const timed = async (work: () => Promise<Answer>): Promise<Answer> => {
    const begun = performance.now();
    const answer = await work();
    longestMs = Math.max(longestMs, performance.now() - begun);
    if (answer.status < 300) committed++;
    else if (answer.status === 422) refused++;
    else surprises.push(answer.text);
    return answer;
  };
  const writer = async (n: number): Promise<void> => {
    for (let i = n; working; i++) {
      const writing = apis[i % apis.length]!;
      // Of the version that is there, and of those before and after it.
      const amount = (digit: number): number => (version + [0, 0, 1, -1][i % 4]!) * WIDTH + (digit % WIDTH);
      const made = await timed(() => writing.post(`/data/${OBJECT}`, { name: `${n}.${i}`, Amount__c: amount(i) }));
      if (made.status !== 201) continue;
      const etag = made.headers.get('etag')!;
      await timed(() => writing.patch(`/data/${OBJECT}/${made.body.id}`, { Amount__c: amount(i + 1) }, { etag }));
    }
  };
  const writing = Array.from({ length: writers }, (_, n) => writer(n));
  try {
    while (version <= versions) {
      await deployOverHttp(admin, ruleFile(version + 1));
      version++;
      await pause(20);
    }
  } finally {
    working = false;
    await Promise.all(writing);
  }
  return { committed, refused, longestMs, surprises };
}

/** Every amount that was committed, in its order: the version of the rule at that moment let it in. */
export async function findNoneAgainstItsRule(databaseUrl: string, tenantId: string): Promise<number> {
  const client = new Client({ connectionString: databaseUrl, application_name: 'changing rules test' });
  await client.connect();
  try {
    await client.query(`SET search_path = "${tenantSchema(tenantId)}"`);
    const { rows } = await client.query<{ type: string; amount: string | null; position: string; deployments: string }>(
      `WITH told AS (
         SELECT outbox_id, type, object, record_id, record_version, sum(CASE WHEN type = 'metadata.schema.changed' THEN 1
           ELSE 0 END) OVER (ORDER BY outbox_id) AS deployments
         FROM _outbox),
       first AS (SELECT min(deployments) AS deployments FROM told WHERE object = $1)
       SELECT told.type, h.changes #>> '{Amount__c,to}' AS amount, told.outbox_id AS position,
         told.deployments - first.deployments AS deployments
       FROM told CROSS JOIN first LEFT JOIN _history h USING (record_id, record_version)
       WHERE told.object = $1 ORDER BY told.outbox_id`,
      [OBJECT],
    );
    const wrong = rows.filter(
      ({ amount, deployments }) => amount !== null && Math.floor(Number(amount) / WIDTH) !== Number(deployments) + 1,
    );
    assert.deepEqual(wrong.slice(0, 5), []);
    return rows.filter(({ amount }) => amount !== null).length;
  } finally {
    await client.end();
  }
}
