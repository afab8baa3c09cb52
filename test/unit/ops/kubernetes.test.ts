/** The output of `kubectl kustomize` for every overlay is complete and consistent, and starts existing commands. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { databaseVariable, readConfig } from '../../../config/env.ts';
import { ALL_SERVICES, CONNECTIONS_MAX, LEASE_CONNECTIONS, SERVICES } from '../../../config/services.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { kubernetesFiles, migrationFile } from '../../../scripts/manifests.ts';
import { exampleNamed, examplesOf } from '../../support/examples.ts';
import { BUCKET_VARIABLES, environmentVariables } from '../../support/sources.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const overlays = readdirSync(join(root, 'k8s', 'overlays'));

// biome-ignore lint/suspicious/noExplicitAny: manifests have no types here, the assertions below are their check
type Manifest = any;
type Labels = Record<string, string>;

/** With the configuration under the name that it had before kustomize wrote a hash of its content behind it. */
const build = (path: string): Manifest[] =>
  parseAllDocuments(
    execFileSync('kubectl', ['kustomize', path], { cwd: root, encoding: 'utf8' }).replaceAll(
      /(name: platform)-[a-z0-9]{10}$/gm,
      '$1',
    ),
  ).map((document) => document.toJS());
const matches = (selector: { matchLabels?: Labels } | undefined, labels: Labels): boolean =>
  Object.entries(selector?.matchLabels ?? {}).every(([name, value]) => labels[name] === value);

describe('the Kubernetes manifests of services', () => {
  it('are those that `npm run manifests` writes from the declarations of the services', () => {
    const folder = join(root, 'k8s', 'base', 'services');
    const written = Object.fromEntries(
      readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
    );
    assert.deepEqual(written, Object.fromEntries(kubernetesFiles()), 'run `npm run manifests`');
  });

  it('never exceed PostgreSQL’s connection limit, even with all pods at their maximum', () => {
    const most = ALL_SERVICES.reduce((sum, name) => {
      const { replicas, connections } = SERVICES[name].kubernetes;
      // One more pod while a rollout replaces them.
      return sum + (replicas.max + 1) * (connections + (name === 'metadata' ? LEASE_CONNECTIONS : 0));
    }, 0);
    // For superusers, backups, the migration and the commands of operators.
    assert.ok(most + 20 <= CONNECTIONS_MAX, `${most}`);
    for (const path of ['docker-compose.yml', 'k8s/overlays/development/postgres.yaml'])
      assert.ok(readFileSync(join(root, path), 'utf8').includes(`max_connections=${CONNECTIONS_MAX}`), path);
  });

  it('replace the pods that read the configuration when that changes', () => {
    const kustomization = (folder: string): Manifest =>
      parseAllDocuments(readFileSync(join(root, 'k8s', folder, 'kustomization.yaml'), 'utf8'))[0]!.toJS();
    const generator = (folder: string): Manifest =>
      kustomization(folder).configMapGenerator.find(({ name }: Manifest) => name === 'platform');
    assert.equal(generator('base').behavior, undefined);
    assert.equal(generator('base').options.disableNameSuffixHash, undefined);
    for (const overlay of overlays) assert.equal(generator(`overlays/${overlay}`).behavior, 'merge');
  });

  it('set each login’s password in the migration to the one that its service uses', () => {
    const text = readFileSync(join(root, 'k8s', 'base', 'migrate.yaml'), 'utf8');
    assert.equal(text, migrationFile(text), 'run `npm run manifests`');
    const migration = parseAllDocuments(text)
      .map((document): Manifest => document.toJS())
      .find(({ kind }) => kind === 'Job');
    const given: Manifest[] = migration.spec.template.spec.containers[0].env;
    for (const service of ALL_SERVICES) {
      const variable = databaseVariable(service);
      const { valueFrom } = given.find(({ name }) => name === variable) ?? {};
      assert.deepEqual(valueFrom, { secretKeyRef: { name: 'platform', key: variable } });
    }
  });
});

describe('the documented network policy for a trace collector', () => {
  it('allows all platform pods to reach the documented port', () => {
    const [policy, ...more] = parseAllDocuments(
      exampleNamed('docs/reference/tracing.md#when-the-collector-is-away'),
    ).map((document): Manifest => document.toJS());
    const [like] = parseAllDocuments(readFileSync(join(root, 'k8s/base/network.yaml'), 'utf8')).map(
      (document): Manifest => document.toJS(),
    );
    assert.equal(more.length, 0);
    assert.deepEqual([policy.apiVersion, policy.kind], [like.apiVersion, like.kind]);
    assert.deepEqual(policy.spec.podSelector, {});
    assert.deepEqual(policy.spec.policyTypes, ['Egress'], 'it adds to what others allow');
    const [, address = ''] = /OTEL_EXPORTER_OTLP_ENDPOINT=(\S+)/.exec(
      exampleNamed('docs/reference/tracing.md#tracing'),
    )!;
    assert.deepEqual(policy.spec.egress[0].ports, [{ port: Number(new URL(address).port) }]);
    assert.deepEqual(Object.keys(policy.spec.egress[0].to[0]), ['namespaceSelector']);
  });
});

describe('the Kubernetes manifests', function () {
  this.timeout(30_000);
  before(function () {
    // The one suite that needs a tool the product itself does not: without it the manifests cannot be built at all.
    if (spawnSync('kubectl', ['version', '--client'], { stdio: 'ignore' }).error) this.skip();
  });

  const PAGE = 'docs/reference/operations-cluster.md#kubernetes';

  it('start the image that the page builds and pushes', () => {
    const images = [...exampleNamed(PAGE).matchAll(/erpplatform\/\S+/g)].map(([image]) => image);
    const version = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
    const [services, console] = ['erp-platform', 'erp-platform-console'].map(
      (name) => `erpplatform/${name}:${version}`,
    );
    assert.deepEqual(images, [services, services, console, console]);
    const page = PAGE.slice(0, PAGE.indexOf('#'));
    assert.ok(exampleNamed(`${page}#console-in-a-pod 3`).includes(` --image ${console} `));
    for (const { spec } of build('k8s/overlays/production').filter(({ kind }) => kind === 'Deployment'))
      assert.equal(spec.template.spec.containers[0].image, images[0]);
  });

  it('accept the documented policies: internet for auth, the collector for all pods', () => {
    const policies = { 'auth-internet': `${PAGE} 2`, traces: 'docs/reference/tracing.md#when-the-collector-is-away' };
    const folder = mkdtempSync(join(tmpdir(), 'erp-overlay-'));
    try {
      for (const [name, example] of Object.entries(policies))
        writeFileSync(join(folder, `${name}.yaml`), exampleNamed(example));
      const production = relative(realpathSync(folder), join(root, 'k8s/overlays/production'));
      const resources = [production, ...Object.keys(policies).map((name) => `${name}.yaml`)];
      writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify({ namespace: 'erp', resources }));
      const manifests = build(folder);
      const allowed = Object.keys(policies).map((wanted): Manifest => {
        const { spec } = manifests.find(({ metadata }) => metadata.name === wanted);
        const chosen = manifests.filter(
          ({ kind, spec: of }) => kind === 'Deployment' && matches(spec.podSelector, of.template.metadata.labels),
        );
        assert.deepEqual(spec.policyTypes, ['Egress'], 'it adds to what others allow');
        return { chosen: chosen.map(({ metadata }) => metadata.name).sort(), egress: spec.egress[0] };
      });
      const [internet, traces] = allowed;
      assert.deepEqual([internet.chosen, internet.egress.ports[0]], [['auth'], { port: 443 }]);
      // Nothing inside, above all not what the cloud tells of the machine.
      for (const range of ['10.0.0.0/8', '169.254.0.0/16', '192.168.0.0/16'])
        assert.ok(internet.egress.to[0].ipBlock.except.includes(range), range);
      assert.deepEqual(traces.chosen, [...ALL_SERVICES].sort());
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('are used by documented kubectl commands that parse, up to the missing cluster', () => {
    const folder = mkdtempSync(join(tmpdir(), 'erp-kubectl-'));
    const prelude = `
      npm() { :; }
      pod=pod/metadata-1
      kubectl() {
        local said; said=$(mktemp -p "$PWD")
        command kubectl --server=http://127.0.0.1:1 "$@" 2> "$said" || grep -qE 'connection (to the server .* was )?refused' "$said" ||
          { echo "kubectl $*: $(cat "$said")" >> not-understood; }
        [[ " $* " != *' get pod '* ]] || echo pod/metadata-1
      }
    `;
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'none') };
    try {
      for (const name of ['operator', ...ALL_SERVICES]) mkdirSync(join(folder, 'keys', name), { recursive: true });
      for (const name of ['ca.crt', 'not-understood']) writeFileSync(join(folder, name), '');
      symlinkSync(join(root, 'k8s'), join(folder, 'k8s'));
      const blocks = ['docs/reference/operations-cluster.md', 'docs/guides/operators.md']
        .flatMap(examplesOf)
        .filter(({ language, text }) => language === 'sh' && text.includes('kubectl'));
      assert.ok(blocks.length >= 9, `${blocks.length} blocks`);
      for (const { text } of blocks)
        spawnSync('bash', ['--norc', '-c', prelude + text], {
          cwd: folder,
          env,
          stdio: ['ignore', 'ignore', 'inherit'],
        });
      assert.equal(readFileSync(join(folder, 'not-understood'), 'utf8'), '');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  for (const overlay of overlays)
    describe(`overlay ${overlay}`, () => {
      let manifests: Manifest[];
      let deployments: Manifest[];
      const find = (kind: string, name: string): Manifest =>
        manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
      const containerOf = (workload: Manifest): Manifest => workload.spec.template.spec.containers[0];

      before(() => {
        manifests = build(`k8s/overlays/${overlay}`);
        deployments = ALL_SERVICES.map((service) => find('Deployment', service));
      });

      for (const service of ALL_SERVICES)
        it(`${service} has its Deployment, autoscaler, disruption budget, network policy and account`, () => {
          for (const kind of [
            'Deployment',
            'HorizontalPodAutoscaler',
            'PodDisruptionBudget',
            'NetworkPolicy',
            'ServiceAccount',
          ])
            assert.ok(find(kind, service), `${kind} ${service}`);
          assert.deepEqual(find('HorizontalPodAutoscaler', service).spec.scaleTargetRef, {
            apiVersion: 'apps/v1',
            kind: 'Deployment',
            name: service,
          });
          const environment: Manifest[] = containerOf(find('Deployment', service)).env;
          assert.equal(environment.find((entry) => entry.name === 'SERVICES').value, service);
        });

      it('every selector matches its intended pods', () => {
        const pods = manifests
          .filter((manifest) => manifest.spec?.template?.metadata?.labels)
          .map((manifest) => ({ name: manifest.metadata.name, labels: manifest.spec.template.metadata.labels }));
        const found = (selector: { matchLabels?: Labels }): string[] =>
          pods.filter((pod) => matches(selector, pod.labels)).map((pod) => pod.name);
        for (const manifest of manifests) {
          const name = manifest.metadata.name as string;
          if (['Deployment', 'StatefulSet', 'PodDisruptionBudget'].includes(manifest.kind))
            assert.deepEqual(found(manifest.spec.selector), [name], `${manifest.kind} ${name}`);
          if (manifest.kind === 'Service')
            assert.deepEqual(found({ matchLabels: manifest.spec.selector }), [name], `Service ${name}`);
          if (manifest.kind === 'NetworkPolicy' && name !== 'default-deny')
            assert.deepEqual(found(manifest.spec.podSelector), [name], `NetworkPolicy ${name}`);
        }
        const addressed = manifests
          .filter((manifest) => manifest.kind === 'NetworkPolicy')
          .flatMap((policy) => (policy.spec.egress ?? []).flatMap((rule: Manifest) => rule.to ?? []))
          .filter((peer: Manifest) => peer.podSelector && !peer.namespaceSelector);
        for (const peer of addressed) assert.ok(found(peer.podSelector).length, JSON.stringify(peer));
      });

      it('all traffic except DNS is denied by default', () => {
        const policy = find('NetworkPolicy', 'default-deny').spec;
        assert.deepEqual(policy.podSelector, {});
        assert.deepEqual(policy.policyTypes, ['Ingress', 'Egress']);
        assert.equal(policy.ingress, undefined);
        assert.deepEqual(policy.egress[0].to[0].podSelector, { matchLabels: { 'k8s-app': 'kube-dns' } });
      });

      it('only the gateway accepts calls from the ingress', () => {
        for (const service of ALL_SERVICES) {
          const peers = find('NetworkPolicy', service).spec.ingress.flatMap((rule: Manifest) => rule.from);
          const namespaces = peers.map(
            (peer: Manifest) => peer.namespaceSelector.matchLabels['kubernetes.io/metadata.name'],
          );
          assert.deepEqual(
            namespaces,
            service === 'gateway' ? ['ingress-nginx', 'monitoring'] : ['monitoring'],
            service,
          );
        }
        const published = ALL_SERVICES.filter((service) => find('Service', service));
        assert.deepEqual(published, ['gateway']);
        const backend = find('Ingress', 'platform').spec.rules[0].http.paths[0].backend.service;
        const target = find('Service', backend.name);
        assert.ok(target.spec.ports.some((port: Manifest) => port.name === backend.port.name));
      });

      it('every process is probed on its port, and has limits and minimal privileges', () => {
        for (const deployment of deployments) {
          const name = deployment.metadata.name;
          const pod = deployment.spec.template.spec;
          const container = containerOf(deployment);
          const configuration = find('ConfigMap', 'platform').data;
          const opened = (variable: string): Manifest =>
            container.ports.find((entry: Manifest) => entry.containerPort === Number(configuration[variable]));
          const port = opened('HEALTH_PORT');
          assert.ok(port, `${name} opens HEALTH_PORT`);
          assert.equal(opened('PORT') !== undefined, name === 'gateway', name);
          const { annotations } = deployment.spec.template.metadata;
          assert.equal(annotations['prometheus.io/port'], configuration['HEALTH_PORT'], 'callers cannot read metrics');
          for (const [probe, path] of [
            ['startupProbe', '/healthz'],
            ['livenessProbe', '/healthz'],
            ['readinessProbe', '/readyz'],
          ] as const) {
            assert.equal(container[probe].httpGet.path, path, `${name} ${probe}`);
            assert.equal(container[probe].httpGet.port, port.name, `${name} ${probe}`);
          }
          for (const side of ['requests', 'limits'])
            for (const resource of ['cpu', 'memory']) assert.ok(container.resources[side][resource], `${name} ${side}`);
          assert.equal(pod.automountServiceAccountToken, false);
          assert.equal(pod.securityContext.runAsNonRoot, true);
          assert.equal(pod.securityContext.seccompProfile.type, 'RuntimeDefault');
          assert.equal(container.securityContext.allowPrivilegeEscalation, false);
          assert.equal(container.securityContext.readOnlyRootFilesystem, true);
          assert.deepEqual(container.securityContext.capabilities.drop, ['ALL']);
        }
      });

      it('allows a process its shutdown time, and its probes time to react', () => {
        const { SHUTDOWN_SECONDS, SHUTDOWN_GRACE_SECONDS } = find('ConfigMap', 'platform').data;
        for (const deployment of deployments) {
          const { name } = deployment.metadata;
          const pod = deployment.spec.template.spec;
          const { periodSeconds, timeoutSeconds, failureThreshold } = containerOf(deployment).readinessProbe;
          assert.ok(pod.terminationGracePeriodSeconds >= Number(SHUTDOWN_SECONDS) + 5, name);
          assert.ok(failureThreshold * (periodSeconds + timeoutSeconds) < Number(SHUTDOWN_GRACE_SECONDS), name);
          const requestSeconds = LIMITS.request_timeout_ms / 1_000;
          assert.ok(Number(SHUTDOWN_SECONDS) - Number(SHUTDOWN_GRACE_SECONDS) - 3 >= requestSeconds, name);
        }
      });

      it('sets only variables that the program reads, and keeps secrets in a Secret', () => {
        const known = [...environmentVariables(), ...BUCKET_VARIABLES];
        const workloads = [...deployments, find('Job', 'migrate')];
        const secret = known.filter((name) => /^(AWS_|DATABASE_URL|FILES_KEY|PLATFORM_SECRET|SMTP_URL)/.test(name));
        for (const workload of workloads)
          for (const entry of containerOf(workload).env) {
            assert.ok(known.includes(entry.name), `${workload.metadata.name} sets ${entry.name}`);
            if (secret.includes(entry.name)) assert.equal(entry.valueFrom.secretKeyRef.name, 'platform');
          }
        for (const name of Object.keys(find('ConfigMap', 'platform').data)) {
          assert.ok(known.includes(name), `ConfigMap sets ${name}`);
          assert.ok(!secret.includes(name), `${name} is a secret`);
        }
        assert.equal(
          manifests.some((manifest) => manifest.kind === 'Secret'),
          false,
        );
      });

      it('starts the migration and its dependents with the environment of their pods', () => {
        const given = find('ConfigMap', 'platform').data;
        for (const workload of [...deployments, find('Job', 'migrate')]) {
          const [container] = workload.spec.template.spec.initContainers ?? [containerOf(workload)];
          assert.deepEqual(container.command.slice(0, 2), ['node', 'scripts/migrate.ts'], workload.metadata.name);
          assert.equal(container.image, containerOf(workload).image);
          const own = container.env.map(({ name, value }: Manifest) => [
            name,
            value ?? 'postgres://login:x@db/erp?sslmode=verify-full',
          ]);
          const config = readConfig({ ...given, ...Object.fromEntries(own) }, { command: true });
          assert.ok(config.databaseUrl, workload.metadata.name);
        }
      });

      it('gives every service its own keys of the bus, and none to the migration', () => {
        for (const deployment of deployments) {
          const pod = deployment.spec.template.spec;
          const secrets = pod.volumes.flatMap((volume: Manifest) => volume.secret?.secretName ?? []);
          assert.deepEqual(secrets.sort(), [`bus-${deployment.metadata.name}`, 'database-ca']);
          const mount = containerOf(deployment).volumeMounts.find((entry: Manifest) => entry.name === 'bus');
          assert.equal(mount.readOnly, true);
          for (const name of ['NATS_CA_FILE', 'NATS_NKEY_FILE', 'BUS_KEYS_FILE'])
            assert.ok(
              containerOf(deployment)
                .env.find((entry: Manifest) => entry.name === name)
                .value.startsWith(`${mount.mountPath}/`),
              name,
            );
        }
        const ofMigration = find('Job', 'migrate').spec.template.spec.volumes;
        assert.deepEqual(
          ofMigration.map((volume: Manifest) => volume.secret.secretName),
          ['database-ca'],
        );
        assert.match(find('ConfigMap', 'platform').data.NATS_URL, /^tls:/);
      });

      it('runs the migration first, with its requirements', () => {
        const first = manifests.filter(({ metadata }) => metadata.labels?.rollout === 'first');
        assert.deepEqual(first.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(), [
          'ConfigMap platform',
          'Job migrate',
          'NetworkPolicy migrate',
          'ServiceAccount migrate',
        ]);
      });

      it('gives each service the address of its own login, and that of the owner to the migration alone', () => {
        for (const workload of [...deployments, find('Job', 'migrate')]) {
          const { name } = workload.metadata;
          const keys = containerOf(workload)
            .env.filter((entry: Manifest) => entry.name === 'DATABASE_URL')
            .map((entry: Manifest) => entry.valueFrom.secretKeyRef.key);
          assert.deepEqual(keys, [name === 'migrate' ? 'DATABASE_URL' : `DATABASE_URL_${name.toUpperCase()}`]);
        }
      });

      it('runs one image with one tag everywhere, and a migration that exists', () => {
        const workloads = [...deployments, find('Job', 'migrate')];
        const images = new Set(workloads.map((workload) => containerOf(workload).image));
        assert.equal(images.size, 1);
        assert.match([...images][0] as string, /^(erpplatform\/)?erp-platform:[\w.-]+$/);
        const script = containerOf(find('Job', 'migrate')).command[1];
        assert.ok(existsSync(join(root, script)), script);
      });
    });
});
