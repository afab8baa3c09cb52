/** Guidance for the operations of metadata. */
import type { Guidance } from './types.ts';

export const METADATA_GUIDANCE = {
  'metadata.components.retrieve': {
    whenToUse:
      'To read the configuration (objects, fields, rules, permissions) as files, and always before changing it. Keep the whole tree and its `metadataVersion`.',
    whenNotToUse:
      'Not to read records, and not to learn what the caller can do with an object: `schema.objects.describe` says that.',
    preconditions: ['The user has the permission `metadataRead`.', 'Type names, from `metadata.types.list`.'],
    commonErrors: ['METADATA_PERMISSION_DENIED', 'PACKAGE_INVALID', 'TOO_MANY_ITEMS'],
  },
  'metadata.components.validate': {
    whenToUse:
      'After every change of the files, to see the plan: what would be created, updated and deleted, and what is blocked with file, line and remedy.',
    whenNotToUse:
      'Not as proof that something was applied: `valid: true` means that the plan holds. Never set `allowDestructiveChanges` to get rid of a problem.',
    preconditions: [
      'The whole tree of a retrieve, changed where intended, with its package.',
      'The user has the permission `metadataRead`.',
    ],
    commonErrors: ['YAML_INVALID', 'METADATA_DRIFT', 'PACKAGE_INVALID', 'METADATA_PERMISSION_DENIED'],
  },
  'metadata.deployments.create': {
    whenToUse:
      'When a person has seen the plan and wants it applied. Send `baseMetadataVersion` and the `expectedPlanHash` that was reviewed.',
    whenNotToUse:
      'Not to try something out: use `metadata.components.validate`, or `checkOnly: true` for a recorded validation. A rollback restores configuration and is no restore of records.',
    preconditions: [
      'A validation of the same files with `valid: true`, shown to a person.',
      'The user has the permission `metadataManage`.',
    ],
    commonErrors: [
      'METADATA_DRIFT',
      'PLAN_CHANGED',
      'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
      'METADATA_PERMISSION_DENIED',
      'AUTHENTICATION_INSUFFICIENT',
    ],
  },
  'metadata.deployments.list': {
    whenToUse: 'To see what was deployed when and by whom, or to find the id of a deployment.',
    whenNotToUse: 'Not to wait for a deployment: read that one with `metadata.deployments.get`.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT', 'CURSOR_EXPIRED'],
  },
  'metadata.deployments.get': {
    whenToUse:
      'After a deploy, every few seconds until `status` is `SUCCEEDED`, `FAILED` or `CANCELED`; later for its plan and outcome.',
    whenNotToUse: 'Not more often than every two seconds. A validation that succeeded has applied nothing.',
    preconditions: ['The `deploymentId` of the deploy.'],
    commonErrors: ['DEPLOYMENT_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'metadata.deployments.cancel': {
    whenToUse:
      'When a deployment that has not ended is not wanted any more. Read it afterwards: it may have succeeded.',
    whenNotToUse: 'Not to undo what has been applied: that is `metadata.deployments.create` with `rollback`.',
    preconditions: [
      'The user asked for the deployment or holds `manageAccess`.',
      'The user has the permission `metadataManage`.',
    ],
    commonErrors: ['DEPLOYMENT_NOT_CANCELABLE', 'DEPLOYMENT_NOT_FOUND', 'METADATA_PERMISSION_DENIED'],
  },
  'metadata.types.list': {
    whenToUse: 'Before writing or changing files: the path, the member format and the JSON Schema of every type.',
    whenNotToUse: 'Not for what the tenant has of them: that is `metadata.components.retrieve`.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;
