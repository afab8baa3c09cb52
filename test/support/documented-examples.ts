/**
 * How each example of the documents is tried out, by its name (test/support/examples.ts). An example that is not here
 * fails a test of the repository; one that cannot be tried out is here with the reason.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ServiceBroker } from 'moleculer';
import { readMail } from '../../config/mail.ts';
import { MULTI_FACTOR_ACR, STEP_UP_MAX_AGE_SECONDS } from '../../contracts/auth.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import { signIn } from '../../scripts/sign-in.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';
import { type Answer, type Api, api, demoPassword, tokenFor } from './client.ts';
import { exampleNamed, likeExample } from './examples.ts';
import { fieldFile, objectFiles, wholePackage } from './metadata-tenant.ts';
import { root } from './sources.ts';
import { sharedFolder } from './temporary.ts';

// biome-ignore lint/suspicious/noExplicitAny: examples and answers are compared, whatever they hold
type Anything = any;

/** Environment in which an example runs. */
export interface Stage {
  readonly baseUrl: string;
  readonly broker: ServiceBroker;
  readonly databaseUrl: string;
  readonly natsUrl: string;
}

type Trial = (text: string, stage: Stage) => Promise<unknown>;

/** In place of the one of the demo, which has labels for parts of its own layouts. */
const NO_TRANSLATION = { 'translations/de.yaml': 'type: Translation\napiName: de\nlabels: {}\n' };

/** Names of examples, and how they are tried out. */
export const TRIED: Readonly<Record<string, Trial>> = {
  'docs/guides/connect-an-assistant.md#1-declare-the-client': file('externalClients/Assistant.yaml'),
  'docs/guides/connect-an-assistant.md#1-declare-the-client 2': file('externalClients/Assistant.yaml'),
  'docs/reference/mail.md#setting-it-up': (text) => {
    const env = Object.fromEntries(
      [...text.matchAll(/^(\w+)="?([^"\n]*)"?$/gm)].map(([, name, value]) => [name, value]),
    );
    const problems: string[] = [];
    readMail(env, { production: true, dataDir: '/' }, problems);
    // The file with the password is the operator's.
    assert.deepEqual(problems, [`SMTP_PASSWORD_FILE names a file that cannot be read: ${env['SMTP_PASSWORD_FILE']}.`]);
    return Promise.resolve();
  },
  'docs/guides/operators.md#health-metrics-logs': async (text, stage) => {
    const output = await shell(text, stage);
    assert.match(output, /"status":"ready"/);
    assert.match(output, /erp_http_requests_total/);
  },
  'docs/guides/operators.md#a-new-tenant': async (text, stage) =>
    assert.match(await shell(text, stage), /password link +http/),
  'docs/guides/operators.md#the-life-of-a-tenant': async (text, stage) => {
    const states = [...(await shell(text, stage)).matchAll(/^state +(\w+)$/gm)].map(([, state]) => state);
    assert.deepEqual(states, ['active', 'suspended', 'active', 'deleting', 'active', 'active']);
  },
  'docs/guides/operators.md#limits-of-a-tenant': async (text, stage) => {
    assert.match(await shell(text.replaceAll('lakeside', 'acme'), stage), /acme/);
    await shell('npm run --silent limits -- --tenant acme connection=default daily=default', stage);
  },
  'docs/reference/moving-tenants.md#moving-tenants': async (text, stage) => {
    const folder = await mkdtemp(join(tmpdir(), 'erp-moving-'));
    try {
      const output = await shell(
        text.replaceAll('lakeside.tar.gz', join(folder, 'tenant.tar.gz')).replaceAll('lakeside', 'acme'),
        stage,
      );
      assert.match(output, /file +whole[\s\S]*acme2, .*, imported[\s\S]*acmetest, .*, a sandbox/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  'docs/reference/tenants.md#tenants': async (text, stage) =>
    assert.match(await shell(text, stage), /create \[options\]/),
  'docs/guides/operators.md#the-audit-trail': async (text, stage) =>
    assert.match(await shell(text, stage), /^demo: intact, /m),
  'docs/guides/operators.md#the-audit-trail 2': async (text, stage) =>
    assert.match(await shell('npm run --silent audit -- verify', stage), likeExample(text)),
  'docs/guides/operators.md#the-audit-trail 3': async (text, stage) => {
    const [, end = ''] = / ends at (\S+)/.exec(await shell('npm run --silent audit -- verify --tenant demo', stage))!;
    assert.match(await shell(text.replace(/\S+…/, end), stage), /^demo: intact, /m);
    const other = shell(
      text.replace(
        /\S+…/,
        end.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      ),
      stage,
    );
    await assert.rejects(other, { code: 1 });
  },

  'docs/reference/agents.md#runs': async (text, stage) => {
    const agent = await agentOf(stage);
    const [begin, read, complete] = requestsOf(text);
    const { runId } = (await accepted(send(agent, begin!))).body;
    await accepted(send(agent, { ...read!, path: read!.path.replace('?…', '?take=1'), headers: under(runId) }));
    await accepted(send(agent, { ...complete!, path: `/agent/runs/${runId}/complete` }));
  },
  'docs/reference/agents.md#policies': file('agentPolicies/Default.yaml'),
  'docs/reference/agents.md#approvals': async (text, stage) => {
    const { refusal } = await askedForApproval(stage);
    assertLike(JSON.parse(text), refusal.body, { whole: false });
    assertCatalogued(JSON.parse(text));
  },
  'docs/reference/agents.md#approvals 2': async (text, stage) => {
    const { refusal } = await askedForApproval(stage);
    const { approvalId, fingerprint } = refusal.body.details;
    const [{ method, body }] = requestsOf(text) as [Request];
    const mia = await person(stage, 'mia');
    await accepted(mia.send(method, `/agent/approvals/${approvalId}/decision`, { ...body, fingerprint }));
  },
  'docs/reference/agents.md#revert': async (text, stage) => {
    const agent = await agentOf(stage);
    const { runId } = (await agent.post('/agent/runs', { agentKey: 'dunning', goal: 'Write a note.' })).body;
    const { id, etag } = await invoice(stage);
    await accepted(agent.patch(`/data/Invoice__c/${id}`, { Notes__c: 'Call first.' }, { etag, headers: under(runId) }));
    await accepted(agent.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.' }));
    const { body } = await accepted((await person(stage, 'mia')).post(`/agent/runs/${runId}/revert`));
    assert.equal(body.reverted.length, 1);
    assertLike(JSON.parse(text), body);
    assertAnswer('agent.runs.revert', text);
  },

  'docs/reference/aggregation.md#groups-and-measures': async (text, stage) => {
    const { body } = await aggregate(stage, JSON.parse(text));
    assert.ok(body.columns.length > 0);
  },
  'docs/reference/aggregation.md#answer': async (text, stage) => {
    const example = JSON.parse(text);
    const question = exampleNamed('docs/reference/aggregation.md#groups-and-measures');
    const query = JSON.parse(question);
    query.filters.conditions.push({ id: 'b', field: 'CurrencyIsoCode__c', operator: 'eq', value: 'EUR' });
    const { body } = await aggregate(stage, query);
    assert.deepEqual(body.columns, example.columns);
    assertLike(example, body, { whole: false });
  },
  'docs/reference/analytics.md#content': (text, stage) => runWidget(stage, JSON.parse(text)),
  'docs/reference/assistant-manifest.md#assistant-manifest': async (text, { baseUrl }) => {
    const response = await fetch(text.trim().replace('{base_url}', baseUrl));
    assert.equal(((await response.json()) as Anything).apiVersion, '1.0.0');
  },

  'docs/reference/authentication.md#step-up': async (text) => {
    assert.match(text, /^WWW-Authenticate: Bearer error="insufficient_user_authentication",/);
    assert.ok(text.includes(`acr_values="${MULTI_FACTOR_ACR}", max_age=${STEP_UP_MAX_AGE_SECONDS}, …`));
  },
  'docs/reference/authentication.md#a-token-for-trying-things': async (text, stage) =>
    assert.match(await shell(text, stage), /^eyJ\S+\n$/),

  ...requestAndAnswer('docs/reference/bulk.md#bulk-jobs', 'bulk.jobs.create'),
  ...requestAndAnswer('docs/reference/composite.md#several-operations-in-one-request', 'composite.requests.execute'),
  ...requestAndAnswer('docs/reference/webhooks.md#webhooks', 'events.subscriptions.create'),
  'docs/reference/events.md#events': async (text, stage) => {
    await createdEvent(stage, text);
  },
  'docs/reference/events.md#events 2': async (text, stage) => {
    assertLike(JSON.parse(text), await createdEvent(stage, exampleNamed('docs/reference/events.md#events')));
    assertAnswer('events.items.list', text);
  },
  'docs/reference/duplicates.md#duplicates': file('objects/Account/duplicateRules/SameTaxId.yaml'),
  'docs/reference/duplicates.md#answer': async (text, stage) => {
    const ada = await person(stage, 'ada');
    const account = { name: 'Twice Ltd', TaxId__c: 'GB999000111' };
    await accepted(ada.post('/data/Account', account));
    const refusal = await ada.post('/data/Account', account);
    assert.equal(refusal.status, 409);
    assertLike(JSON.parse(text), refusal.body, { whole: false });
    assertCatalogued(JSON.parse(text));
  },
  'docs/reference/errors.md#errors': async (text, stage) => {
    const example = JSON.parse(text);
    const { body } = await (await person(stage, 'sam')).get('/data/Account?tak=1');
    const { requestId, type } = body;
    assert.deepEqual({ ...example, requestId, type }, body);
    assert.equal(new URL(example.type).pathname, new URL(type).pathname);
  },
  'docs/reference/expressions.md#expressions': async (text, stage) => {
    const lines = text.trim().split('\n');
    const rules = lines.map((line, i) => [`objects/Invoice__c/validationRules/Example${i}.yaml`, rule(i, line)]);
    await assertDeployable(stage, Object.fromEntries(rules));
  },
  'docs/reference/field-types.md#rollups': file('objects/Order__c/fields/Total__c.yaml', {
    ...objectFiles('Order__c'),
    ...objectFiles('OrderLine__c', {
      OrderId__c: 'fieldType: reference\nreferenceTo: [Order__c]',
      Amount__c: 'fieldType: currency',
    }),
  }),
  'docs/reference/field-types.md#formulas': file('objects/Order__c/fields/Gross__c.yaml', {
    ...objectFiles('Order__c'),
    ...fieldFile('Order__c', 'Net__c', 'fieldType: currency'),
    ...fieldFile('Order__c', 'Rate__c', 'fieldType: percent'),
  }),
  'docs/reference/limits.md#rate': async (text, stage) => assert.match(await shell(text, stage), /demo/),
  'docs/reference/metadata.md#types': file('objects/Invoice__c/validationRules/AmountPositive.yaml'),
  'docs/reference/metadata.md#types 2': file('objects/Invoice__c/sharingRules/FinanceRead.yaml', {
    'groups/Finance.yaml': 'type: Group\napiName: Finance\nlabel: Finance\n',
  }),
  'docs/reference/metadata.md#types 3': file('objects/Invoice__c/sharingRules/AccountOwner.yaml'),
  'docs/reference/metadata.md#types 4': file('objects/Invoice__c/notificationTemplates/Sent.yaml'),
  'docs/reference/metadata.md#types 5': file('identityProviders/CorporateLogin.yaml'),
  'docs/reference/metadata.md#altering': async (text, stage) => {
    const files = {
      'manifest/destructiveChanges.yaml': text.replace('Note__c', 'Notes__c'),
      ...fieldFile('Invoice__c', 'Notes__c', 'fieldType: text\nlength: 3'),
    };
    await assertDeployable(stage, files, { allowDestructiveChanges: true });
  },

  'docs/reference/querying.md#filters': listed('Invoice__c', (text) => text),
  'docs/reference/querying.md#related-records': listed('Account', (text) => `{"logic":"and","conditions":[${text}]}`),
  'docs/reference/querying.md#fields-of-a-referenced-record': async (text, stage) => {
    await accepted((await person(stage, 'sam')).post('/data/Invoice__c/query', JSON.parse(text)));
  },
  'docs/reference/querying.md#expanding-references': async (text, stage) => {
    assert.ok((await contacts(stage, text)).length > 0);
  },
  'docs/reference/querying.md#expanding-references 2': async (text, stage) => {
    const question = exampleNamed('docs/reference/querying.md#expanding-references');
    const found = await contacts(stage, question);
    assertLike(
      JSON.parse(text),
      found.find(({ _expanded }) => _expanded.accountId),
    );
  },
  'docs/reference/querying.md#expanding-references 3': async (text, stage) => {
    await accepted((await person(stage, 'sam')).post('/data/Contact/query', JSON.parse(text)));
  },
  'docs/reference/records.md#dry-run': async (text, stage) => {
    const sam = await person(stage, 'sam');
    const { body } = await accepted(sam.post('/data/Account/check', JSON.parse(text)));
    assert.equal(body.valid, true);
  },
  'docs/reference/records.md#dry-run 2': async (text, stage) => {
    const sam = await person(stage, 'sam');
    const check = { operation: 'create', fields: { name: 'Acme GmbH' } };
    assertLike(JSON.parse(text), (await accepted(sam.post('/data/Account/check', check))).body);
  },
  'docs/reference/scim.md#errors': async (text, { baseUrl }) => {
    const response = await fetch(`${baseUrl}/scim/v2/Users`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await tokenFor(baseUrl, 'ada', 'users:manage')}`,
        'content-type': 'application/scim+json',
      },
      body: JSON.stringify({ userName: 'sam@demo.example' }),
    });
    const example = JSON.parse(text);
    assertLike({ ...example, requestId: response.headers.get('x-request-id') }, await response.json());
  },
  'docs/reference/records.md#validation-rules': async (text, stage) => {
    const example = JSON.parse(text);
    const sam = await person(stage, 'sam');
    const { AccountId__c } = (await invoice(stage)).record;
    const { status, body } = await sam.post('/data/Invoice__c', { AccountId__c, Amount__c: -1 });
    assert.equal(status, 422);
    assert.deepEqual(
      body.errors.find(({ ruleApiName }: Anything) => ruleApiName === example.ruleApiName),
      example,
    );
  },
  'docs/reference/records.md#following-changes': async (text, stage) => {
    const sam = await person(stage, 'sam');
    const { body: begun } = await sam.get('/data/Account/changes');
    await accepted(sam.post('/data/Account', { name: 'Followed Ltd' }));
    let changes: Anything = { records: [], resumeCursor: begun.resumeCursor };
    for (let left = 100; changes.records.length === 0 && left > 0; left--)
      changes = (await sam.get(`/data/Account/changes?cursor=${encodeURIComponent(changes.resumeCursor)}`)).body;
    assertLike(JSON.parse(text), changes);
  },
  'docs/reference/screens.md#layouts': file('objects/Invoice__c/layouts/Default.yaml', NO_TRANSLATION),
  'docs/reference/screens.md#layouts 2': file('objects/Invoice__c/layouts/Accounting.yaml', NO_TRANSLATION),
  'docs/reference/screens.md#list-views': file('objects/Invoice__c/listViews/Open.yaml'),
  'docs/reference/screens.md#translations': file('translations/de.yaml'),
  'docs/reference/transitions.md#a-state-model': (text, stage) =>
    // An object of its own: what profiles of the demo allow belongs to the state model of the demo.
    assertDeployable(stage, {
      ...objectFiles('Bill__c', {
        Amount__c: 'fieldType: currency',
        SentAt__c: 'fieldType: dateTime',
        Status__c:
          'fieldType: picklist\npicklist:\n  values:\n    - value: draft\n      label: Draft\n    - value: sent\n      label: Sent',
      }),
      'objects/Bill__c/stateModels/Lifecycle.yaml': text.replaceAll('Invoice__c', 'Bill__c'),
    }),
  'docs/reference/transitions.md#the-list': async (text, stage) => {
    const { id } = await invoice(stage);
    const { body } = await accepted((await person(stage, 'mia')).get(`/data/Invoice__c/${id}/transitions`));
    assertLike(JSON.parse(text), body);
    assertAnswer('data.transitions.list', text);
  },
  'docs/reference/transitions.md#executing': async (text, stage) => {
    const { id, etag } = await invoice(stage);
    const mia = await person(stage, 'mia');
    const { body } = await accepted(mia.post(`/data/Invoice__c/${id}/transitions/discard`, {}, { etag }));
    assertLike(JSON.parse(text), body);
    assertAnswer('data.transitions.execute', text);
  },
};

/** Names of examples that a test of another kind runs as printed, or holds against what is printed, and where. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/guides/let-an-agent-work.md#1-start-the-agent': 'test/api/agent-example.long.test.ts',
  'docs/guides/single-sign-on.md#2-register-the-platform-at-the-provider': 'test/api/guides.ts',
  'docs/guides/build-an-application.md#2-install-the-client': 'test/browser/application.test.ts',
  'docs/guides/build-an-application.md#3-write-the-types-of-your-objects': 'test/browser/application.test.ts',
  'docs/guides/build-an-application.md#4-compile-it': 'test/browser/application.test.ts',
  'docs/guides/build-an-application.md#4-compile-it 2': 'test/browser/application.test.ts',
  'docs/guides/build-an-application.md#4-compile-it 3': 'test/browser/application.test.ts',
  'docs/reference/client.md#connecting': 'test/browser/application.test.ts',
  'docs/guides/use-the-command-line.md#in-a-script': 'test/cli/data.long.test.ts',
  'docs/guides/use-the-command-line.md#when-somebody-else-was-faster': 'test/cli/data.long.test.ts',
  'docs/reference/cli-metadata.md#validate-and-deploy': 'test/cli/metadata.nightly.test.ts',
  'docs/reference/cli-metadata.md#validate-and-deploy 2': 'test/cli/metadata.nightly.test.ts',
  'docs/reference/cli.md#starting-it': 'test/cli/package.long.test.ts',
  'docs/reference/cli.md#starting-it 2': 'test/cli/package.long.test.ts',
  'README.md#the-first-request 6': 'test/cli/sign-in.test.ts',
  'docs/guides/use-the-command-line.md#sign-in': 'test/cli/sign-in.test.ts',
  'docs/guides/use-the-command-line.md#in-typescript': 'test/cli/types.long.test.ts',
  'docs/guides/use-the-command-line.md#in-typescript 2': 'test/cli/types.long.test.ts',
  'docs/guides/use-the-command-line.md#in-typescript 3': 'test/cli/types.long.test.ts',
  'docs/guides/operators.md#follow-a-request': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/guides/operators.md#start-and-stop 3': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#another-secret-on-kubernetes': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#another-secret-on-kubernetes 2':
    'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#console-in-a-pod': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#console-in-a-pod 2': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#console-in-a-pod 3': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#kubernetes 3': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#kubernetes 4': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#prometheus-and-grafana': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#upgrade-on-kubernetes': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#upgrade-on-kubernetes 2': 'test/cluster/company-goes-live.nightly.test.ts',
  'docs/reference/operations-cluster.md#a-connection-pooler': 'test/cluster/pooler.nightly.test.ts',
  'docs/reference/operations-cluster.md#docker-compose': 'test/cluster/compose.nightly.test.ts',
  'docs/reference/operations-cluster.md#docker-compose 2': 'test/cluster/compose.nightly.test.ts',
  'docs/reference/operations-cluster.md#keys-of-the-bus': 'test/cluster/compose.nightly.test.ts',
  'docs/reference/operations-cluster.md#keys-of-the-bus 2': 'test/cluster/compose.nightly.test.ts',
  'docs/reference/operations-cluster.md#upgrade-with-docker-compose': 'test/cluster/compose.nightly.test.ts',
  'docs/reference/operations-cluster.md#services-that-are-away': 'test/cluster/observing.long.test.ts',
  'docs/guides/operators.md#several-processes': 'test/cluster/own-database.nightly.test.ts',
  'docs/guides/operators.md#start-and-stop 2': 'test/cluster/own-database.nightly.test.ts',
  'docs/guides/operators.md#backup': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#backup 2': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#one-tenant': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#one-tenant 2': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#one-tenant 3': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#one-tenant 4': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#one-tenant 5': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/reference/tenants.md#the-proof': 'test/cluster/restored-tenant.nightly.test.ts',
  'docs/guides/operators.md#backup 3': 'test/cluster/restored.nightly.test.ts',
  'README.md#start': 'test/cluster/single.long.test.ts',
  'docs/guides/operators.md#start-and-stop': 'test/cluster/single.long.test.ts',
  'docs/guides/operators.md#the-console': 'test/cluster/single.long.test.ts',
  'docs/reference/tracing.md#tracing': 'test/cluster/single.long.test.ts',
  'docs/reference/versioning.md#deprecation': 'test/service/gateway/deprecation.test.ts',
  'docs/reference/audit.md#the-chain': 'test/service/data/audit-chain.test.ts',
  'docs/reference/calendar.md#calendar': 'test/api/calendar/recurrence.test.ts',
  'docs/reference/operations.md#stalls': 'test/unit/mixins/watchdog.test.ts',
  'docs/reference/operations-cluster.md#kubernetes 2': 'test/unit/ops/kubernetes.test.ts',
  'docs/reference/tracing.md#when-the-collector-is-away': 'test/unit/ops/kubernetes.test.ts',
};

/** Names of examples that are not tried out, with the reason. Those in the language of the shell must parse. */
export const NOT_TRIED: Readonly<Record<string, string>> = {
  'docs/guides/invite-people.md#4-on-the-command-line':
    'test/cli/administration.test.ts runs these commands with its own people',
  'docs/reference/cli.md#requests': 'test/cli/identity.test.ts sends such requests for its own records.',
  'CONTRIBUTING.md#run-and-test': 'Installs the packages and runs this suite.',
  'README.md#start 2': 'Runs this suite.',
  'docs/guides/build-an-application.md#5-open-it':
    'Serves files until it is stopped; test/browser/application.test.ts serves them.',
  'README.md#where-to-go-on':
    'The commands of docs/reference/operations-cluster.md#docker-compose: test/unit/ops/containers.test.ts holds them alike.',
  'docs/reference/client.md#types-of-events':
    'Fetches from a host of the reader and takes TypeScript 5; was tried by hand.',
  'docs/reference/client.md#types-of-events 2': 'Imports what the program before has written.',
  'docs/reference/duplicates.md#cost': 'A plan that was measured, with its figures.',
  'docs/reference/operations-cluster.md#kubernetes':
    'Takes Docker and a registry; test/unit/ops/kubernetes.test.ts holds its image to that of the manifests.',
};

/** A file of a configuration that the demo tenant could deploy, with others that it needs. */
function file(path: string, others: Record<string, string> = {}): Trial {
  return (text, stage) => assertDeployable(stage, { ...others, [path]: text });
}

async function assertDeployable(stage: Stage, files: Record<string, string>, more: object = {}): Promise<void> {
  const body = { files, package: wholePackage(files), ...more };
  const { body: found } = await accepted((await person(stage, 'ada')).post('/metadata/validate', body));
  assert.equal(found.valid, true, JSON.stringify(found.components ?? found));
}

const rule = (i: number, condition: string): string =>
  `type: ValidationRule\napiName: Example${i}\nobject: Invoice__c\nactive: true\ncondition: ${JSON.stringify(condition)}\nmessage: No.\n`;

/** Filters of a list. */
function listed(objectApiName: string, filters: (text: string) => string): Trial {
  return async (text, stage) => {
    const sam = await person(stage, 'sam');
    await accepted(sam.get(`/data/${objectApiName}?filters=${encodeURIComponent(filters(text))}`));
  };
}

/** Contacts, as an example asks for them. */
async function contacts(stage: Stage, text: string): Promise<Anything[]> {
  const [request] = requestsOf(text) as [Request];
  return (await accepted(send(await person(stage, 'sam'), request))).body.records;
}

/** An example of a request, and behind it one of its answer. */
function requestAndAnswer(name: string, operationId: string): Record<string, Trial> {
  const answerTo = async (text: string, stage: Stage): Promise<Anything> => {
    const [head = '', body = ''] = text.split('\n\n');
    const [, method = '', path = ''] = /^(\w+) \/api\/v1(\S+)/.exec(head) ?? [];
    return (await accepted((await person(stage, 'ada')).send(method, path, JSON.parse(body), {}))).body;
  };
  return {
    [name]: answerTo,
    [`${name} 2`]: async (text, stage) => {
      assertLike(JSON.parse(text), await answerTo(exampleNamed(name), stage));
      assertAnswer(operationId, text);
    },
  };
}

/** The answer of a request that waits for events, once an account was created. */
async function createdEvent(stage: Stage, text: string): Promise<Anything> {
  const ada = await person(stage, 'ada');
  const { body: now } = await accepted(ada.get('/events'));
  await accepted(ada.post('/data/Account', { name: 'Weaver Street Press' }));
  const path = text
    .trim()
    .replace('GET /api/v1', '')
    .replace(/cursor=\w+/, `cursor=${encodeURIComponent(now.resumeCursor)}`);
  const { body } = await accepted(ada.get(path));
  assert.ok(body.records.length > 0);
  return body;
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: Anything;
  readonly headers?: Record<string, string>;
}

/** Lines of a method, a path and, behind some space, a body or headers. */
const requestsOf = (text: string): Request[] =>
  text
    .trim()
    .split('\n')
    .map((line) => {
      const [, method = '', path = '', rest = ''] = /^(\w+) +(\S+) *(.*)$/.exec(line) ?? [];
      return { method, path, ...(rest.startsWith('{') ? { body: JSON.parse(rest) } : {}) };
    });

const send = (who: Api, { method, path, body, headers }: Request): Promise<Answer> =>
  who.send(method, path, body, headers ? { headers } : {});

const under = (runId: string): Record<string, string> => ({ 'X-Agent-Run-Id': runId });

async function accepted(answer: Promise<Answer>): Promise<Answer> {
  const found = await answer;
  assert.ok(found.status < 300, `${found.status} ${found.text}`);
  return found;
}

const person = async ({ baseUrl }: Stage, name: string): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, name));

/** Acts in the name of Sam. */
async function agentOf({ baseUrl }: Stage): Promise<Api> {
  const { access_token } = await signIn({
    baseUrl,
    user: 'sam@demo.example',
    password: demoPassword(),
    clientId: 'demo-DunningAgent',
    scope: 'data:read data:write actions:read actions:execute agent:run',
  });
  return api(baseUrl, access_token);
}

/** A draft that Sam has just made. */
async function invoice(stage: Stage): Promise<{ id: string; etag: string; record: Anything }> {
  const sam = await person(stage, 'sam');
  const { id: AccountId__c } = (await accepted(sam.post('/data/Account', { name: `Customer ${performance.now()}` })))
    .body;
  const { body, headers } = await accepted(sam.post('/data/Invoice__c', { AccountId__c, Amount__c: 100 }));
  return { id: body.id, etag: headers.get('etag') ?? '', record: body };
}

/** An agent asks for what waits for a person. */
async function askedForApproval(stage: Stage): Promise<{ refusal: Answer }> {
  const agent = await agentOf(stage);
  const { runId } = (await agent.post('/agent/runs', { agentKey: 'dunning', goal: 'Tidy up.' })).body;
  const { id, etag } = await invoice(stage);
  const sue = (await (await person(stage, 'sue')).get('/identity')).body.user.id;
  const refusal = await agent.patch(`/data/Invoice__c/${id}`, { ownerId: sue }, { etag, headers: under(runId) });
  assert.equal(refusal.status, 403, refusal.text);
  return { refusal };
}

async function runWidget(stage: Stage, widget: Anything): Promise<Answer> {
  const mia = await person(stage, 'mia');
  const content = { name: 'Example', widgets: [widget] };
  const { body } = await accepted(mia.post('/analytics/dashboards', content));
  return accepted(mia.post(`/analytics/dashboards/${body.dashboardId}/widgets/${widget.widgetKey}/run`, {}));
}

/** The answer about what a widget asks. */
const aggregate = (stage: Stage, query: Anything): Promise<Answer> =>
  runWidget(stage, {
    widgetKey: 'example',
    title: 'Example',
    type: 'table',
    layout: { x: 0, y: 0, w: 12, h: 4 },
    query,
  });

/** Output of the blocks, with npm commands run against the stage. */
async function shell(text: string, { baseUrl, databaseUrl, natsUrl }: Stage): Promise<string> {
  const npm = `npm() { "${process.execPath}" "${root}/scripts/$3.ts" "\${@:5}"; }\n`;
  const script = npm + text.replaceAll('http://localhost:3000', baseUrl);
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], {
    cwd: root,
    env: {
      ...process.env,
      TMPDIR: sharedFolder('written'),
      BASE_URL: baseUrl,
      DATABASE_URL: databaseUrl,
      NATS_URL: natsUrl,
    },
  });
  return stdout;
}

/** The names of the example are there in what was answered, with values of the same kind; `whole`: and no others. */
function assertLike(example: Anything, found: Anything, { whole = true, at = '' } = {}): void {
  if (example === null || found === null) return;
  assert.equal(kindOf(found), kindOf(example), at);
  if (Array.isArray(example)) {
    // Records of a list are alike; values of a row are not.
    for (const [i, one] of example.entries()) {
      const other = typeof one === 'object' ? found[0] : found[i];
      if (other !== undefined) assertLike(one, other, { whole: false, at: `${at}/${i}` });
    }
  } else if (typeof example === 'object') {
    const names = Object.keys(example);
    assert.deepEqual(
      names.filter((name) => !(name in found)),
      [],
      `${at} has no such names`,
    );
    if (whole) assert.deepEqual(Object.keys(found).sort(), names.sort(), at);
    // The fields of records depend on the configuration.
    for (const name of names)
      if (name !== 'record') assertLike(example[name], found[name], { whole: false, at: `${at}/${name}` });
  }
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value);

/** Code and status are those of the catalogue. */
function assertCatalogued({ code, status }: { code: keyof typeof CATALOGUE; status?: number }): void {
  assert.ok(code in CATALOGUE, code);
  if (status !== undefined) assert.equal(status, CATALOGUE[code].status);
}

const DESCRIPTION = openapi(OPERATIONS, '') as Anything;

/** The example is an answer as the description has it. Ids may be cut short. */
function assertAnswer(operationId: string, text: string): void {
  const row = OPERATIONS.find((one) => one.operationId === operationId);
  assert.ok(row, operationId);
  const { responses } = DESCRIPTION.paths[row.path][row.method.toLowerCase()];
  const { schema } = responses[row.response.status].content['application/json'];
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const validate = ajv.compile({ ...schema, components: DESCRIPTION.components });
  const whole = text.replace(/[0-9a-f]{8}-(?:[0-9a-f]{4}-)?…/g, '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24');
  assert.ok(validate(JSON.parse(whole)), JSON.stringify(validate.errors));
}
