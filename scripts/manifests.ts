/**
 * `npm run manifests`: writes what each service needs on a cluster, from what contracts/<service>.ts declares: a file per
 * service below k8s/base/services, the services' part of docker-compose.yml, and the logins that the migration gives
 * their passwords; and k8s/monitoring/prometheus-rule.yaml from rules.yaml beside it. A test holds all of them to their
 * sources.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { databaseVariable } from '../config/env.ts';
import { ALL_SERVICES, HEALTH_PORT, PUBLIC_PORT, SERVICES, type ServiceName } from '../config/services.ts';
import type { ServiceDeclaration } from '../contracts/declaration.ts';
import { loginOf } from '../mixins/database/logins.ts';

const root = join(import.meta.dirname, '..');
const FOLDER = 'k8s/base/services';
const COMPOSE = 'docker-compose.yml';
const WRITTEN = '# Written by `npm run manifests` from contracts/<service>.ts: change it there.';
const COMPOSE_PART = /( {2}# The services: .*\n)[\s\S]*?(?=\nvolumes:)/;
const MIGRATION = 'k8s/base/migrate.yaml';
const RULES = 'k8s/monitoring/rules.yaml';
const PROMETHEUS_RULE = 'k8s/monitoring/prometheus-rule.yaml';
/** The logins of the migration: from the line that begins so to the first one that is indented less. */
const loginsPart = (indent: number): RegExp =>
  new RegExp(`^( {${indent}}# The logins: .*\\n)(?: {${indent}}.*\\n)*`, 'm');

const isPublic = ({ listens }: ServiceDeclaration): boolean => listens === 'public';

/** The port of callers, and the one of probes and metrics, as manifests name them. */
const PORTS = { http: PUBLIC_PORT, health: HEALTH_PORT } as const;

/**
 * Bytes that the kernel takes for a connection before its client has them: 4 MiB by default, of a gateway's thousands of
 * connections. 256 KiB are enough for the ingress controller beside it, and for 1 MB a second over 100 ms of distance.
 */
const SEND_BUFFER = '4096 16384 262144';

const KERNEL = `      securityContext:
        sysctls:
          - name: net.ipv4.tcp_wmem
            value: "${SEND_BUFFER}"
`;

/** The address of the mail server, which may hold a password; without it no mail is sent. */
const MAIL_SERVER = `            - name: SMTP_URL
              valueFrom:
                secretKeyRef:
                  name: platform
                  key: SMTP_URL
                  optional: true
`;

/** Credentials of the bucket where the role of the pod does not give them, and the keys of contents. */
const CONTENTS = ['FILES_KEY', 'FILES_KEYS_PREVIOUS', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']
  .map(
    (name) => `            - name: ${name}
              valueFrom:
                secretKeyRef:
                  name: platform
                  key: ${name}
                  optional: true
`,
  )
  .join('');

function deployment(name: ServiceName, service: ServiceDeclaration): string {
  const ports = (isPublic(service) ? (['http', 'health'] as const) : (['health'] as const))
    .map((port) => `            - name: ${port}\n              containerPort: ${PORTS[port]}\n`)
    .join('');
  const { connections, requests, limits } = service.kubernetes;
  const address = `            - name: DATABASE_URL
              valueFrom:
                secretKeyRef:
                  name: platform
                  key: ${databaseVariable(name)}
`;
  return `apiVersion: v1
kind: ServiceAccount
metadata:
  name: ${name}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  selector:
    matchLabels:
      app.kubernetes.io/component: ${name}
  template:
    metadata:
      labels:
        app.kubernetes.io/component: ${name}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/path: /metrics
        prometheus.io/port: "${HEALTH_PORT}"
    spec:
      serviceAccountName: ${name}
${isPublic(service) ? KERNEL : ''}      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app.kubernetes.io/component: ${name}
      initContainers:
        - name: migrated
          env:
            - name: SERVICES
              value: ${name}
${address}      containers:
        - name: platform
          env:
            - name: SERVICES
              value: ${name}
            - name: DATABASE_POOL_SIZE
              value: "${connections}"
${address}${service.sendsMail ? MAIL_SERVER : ''}${service.usesContents ? CONTENTS : ''}          ports:
${ports}          volumeMounts:
            - name: bus
              mountPath: /run/bus
              readOnly: true
          startupProbe:
            httpGet: { path: /healthz, port: health }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /healthz, port: health }
            periodSeconds: 10
            timeoutSeconds: 3
          readinessProbe:
            httpGet: { path: /readyz, port: health }
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 2
          resources:
            requests: { cpu: "${requests.cpu}", memory: ${requests.memory} }
            limits: { cpu: "${limits.cpu}", memory: ${limits.memory} }
      volumes:
        - name: bus
          secret:
            secretName: bus-${name}
            defaultMode: 0440
`;
}

/** Objects that keep enough replicas running. */
function scaling(name: ServiceName, { kubernetes: { replicas } }: ServiceDeclaration): string {
  return `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: ${name}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: ${name}
  minReplicas: ${replicas.min}
  maxReplicas: ${replicas.max}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: 70
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: ${name}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/component: ${name}
`;
}

const callersService = (name: ServiceName): string => `apiVersion: v1
kind: Service
metadata:
  name: ${name}
spec:
  selector:
    app.kubernetes.io/component: ${name}
  ports:
    - name: http
      port: 80
      targetPort: http
`;

function networkPolicy(name: ServiceName, service: ServiceDeclaration): string {
  const from = (namespace: string, port: keyof typeof PORTS): string => `    - from:
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: ${namespace}
      ports:
        - port: ${port}
`;
  const to = (component: string, number: number): string => `    - to:
        - podSelector:
            matchLabels:
              app.kubernetes.io/component: ${component}
      ports:
        - port: ${number}
`;
  return `# ${isPublic(service) ? 'Callers reach it through the ingress controller alone.' : 'Nothing calls it directly: calls arrive on the bus, to which it connects itself.'}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: ${name}
  labels:
    reaches: database-and-bus${service.usesContents ? '\n    uses: contents' : ''}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/component: ${name}
  policyTypes: [Ingress, Egress]
  ingress:
${isPublic(service) ? from('ingress-nginx', 'http') : ''}${from('monitoring', 'health')}  egress:
${to('nats', 4222)}${to('postgres', 5432)}`;
}

function serviceFile(name: ServiceName): string {
  const service: ServiceDeclaration = SERVICES[name];
  const documents = [
    deployment(name, service),
    ...(isPublic(service) ? [callersService(name)] : []),
    scaling(name, service),
    networkPolicy(name, service),
  ];
  return `${WRITTEN}\n# ${service.purpose}\n${documents.join('---\n')}`;
}

/** Every file below k8s/base/services by its name. */
export function kubernetesFiles(): ReadonlyMap<string, string> {
  const resources = ALL_SERVICES.map((name) => `  - ${name}.yaml\n`).join('');
  return new Map([
    [
      'kustomization.yaml',
      `${WRITTEN}\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n${resources}`,
    ],
    ...ALL_SERVICES.map((name): [string, string] => [`${name}.yaml`, serviceFile(name)]),
  ]);
}

/** The port of callers on the host; docker compose puts the value of PORT in. */
const PUBLISHED = `    sysctls:
      net.ipv4.tcp_wmem: ${SEND_BUFFER}
    ports:
      - "\${PORT:-${PUBLIC_PORT}}:${PUBLIC_PORT}"
`;

/** Signed in as a login of its own, to a server that shows the certificate of this copy. */
const composeLogin = (name: ServiceName): string =>
  `postgres://${loginOf(name)}:\${DATABASE_PASSWORD_${name.toUpperCase()}:?see README.md}` +
  '@postgres:5432/platform?sslmode=verify-full&sslrootcert=/certificates/ca.crt';

/** The mail server of this machine's environment, where there is one. */
const COMPOSE_MAIL = `      SMTP_URL: \${SMTP_URL:-}
      MAIL_FROM: \${MAIL_FROM:-}
`;

/** Where contents of files are, and the key that they are encrypted with: by default a volume, without a key. */
const COMPOSE_CONTENTS = `      FILES_URL: \${FILES_URL:-file:///contents}
      FILES_KEY: \${FILES_KEY:-}
      FILES_KEYS_PREVIOUS: \${FILES_KEYS_PREVIOUS:-}
      AWS_ACCESS_KEY_ID: \${AWS_ACCESS_KEY_ID:-}
      AWS_SECRET_ACCESS_KEY: \${AWS_SECRET_ACCESS_KEY:-}
`;

const composeService = (name: ServiceName): string => `  ${name}:
    <<: *service
    environment:
      <<: [*environment, *bus]
      SERVICES: ${name}
      DATABASE_URL: ${composeLogin(name)}
${SERVICES[name].sendsMail ? COMPOSE_MAIL : ''}${SERVICES[name].usesContents ? COMPOSE_CONTENTS : ''}    volumes:
      - certificates:/certificates:ro
      - ./.bus/${name}:/run/bus:ro
${SERVICES[name].usesContents ? '      - contents:/contents\n' : ''}${isPublic(SERVICES[name]) ? PUBLISHED : ''}`;

/** docker-compose.yml with the services of the list, and with their logins in the migration. */
export function composeFile(text: string): string {
  if (!COMPOSE_PART.test(text)) throw new Error(`${COMPOSE} has no line "# The services: …" before its volumes.`);
  const logins = ALL_SERVICES.map((name) => `      ${databaseVariable(name)}: ${composeLogin(name)}\n`);
  return withLogins(COMPOSE, text, 6, logins).replace(
    COMPOSE_PART,
    (_, head: string) => head + ALL_SERVICES.map(composeService).join('\n'),
  );
}

/** k8s/base/migrate.yaml with the logins of all services. */
export function migrationFile(text: string): string {
  const indent = ' '.repeat(12);
  const logins = ALL_SERVICES.map(databaseVariable).map((name) =>
    [`- name: ${name}`, '  valueFrom:', '    secretKeyRef:', '      name: platform', `      key: ${name}`]
      .map((line) => `${indent}${line}\n`)
      .join(''),
  );
  return withLogins(MIGRATION, text, indent.length, logins);
}

/** k8s/monitoring/prometheus-rule.yaml: the rules as a resource of the Prometheus Operator. */
export const prometheusRuleFile = (
  rules: string,
): string => `# Written by \`npm run manifests\` from rules.yaml: change it there.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: erp
spec:
${rules.slice(rules.indexOf('groups:')).replaceAll(/^(?=.)/gm, '  ')}`;

function withLogins(path: string, text: string, indent: number, logins: readonly string[]): string {
  const part = loginsPart(indent);
  if (!part.test(text))
    throw new Error(`${path} has no line "# The logins: …" at the end of the migration's variables.`);
  return text.replace(part, (_, head: string) => head + logins.join(''));
}

async function writeAll(): Promise<void> {
  const folder = join(root, FOLDER);
  const files = kubernetesFiles();
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) if (!files.has(name)) await rm(join(folder, name));
  for (const [name, text] of files) await writeFile(join(folder, name), text);
  for (const [path, rewritten] of [
    [COMPOSE, composeFile],
    [MIGRATION, migrationFile],
  ] as const)
    await writeFile(join(root, path), rewritten(await readFile(join(root, path), 'utf8')));
  await writeFile(join(root, PROMETHEUS_RULE), prometheusRuleFile(await readFile(join(root, RULES), 'utf8')));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeAll();
