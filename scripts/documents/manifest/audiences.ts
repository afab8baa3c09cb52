/** For whom each page of the documents is. */

type Audience = 'developers' | 'assistants' | 'administrators' | 'operators' | 'users';

/** Audiences of pages that are not for API developers, or not for them alone. */
const OTHERS: Readonly<Record<string, readonly Audience[]>> = {
  changelog: ['developers', 'administrators', 'operators'],
  glossary: ['developers', 'assistants', 'administrators'],
  'guides/bring-your-data': ['users', 'developers', 'assistants'],
  'guides/check-what-is-entered': ['administrators', 'assistants'],
  'guides/configuration-as-files': ['administrators', 'assistants'],
  'guides/find-out-why': ['developers', 'administrators', 'assistants'],
  'guides/give-records-a-life': ['administrators', 'assistants'],
  'guides/invite-people': ['administrators', 'assistants'],
  'guides/let-an-agent-work': ['developers', 'administrators', 'assistants'],
  'guides/model-your-business': ['administrators', 'assistants'],
  'guides/open-a-dashboard': ['users'],
  'guides/operators': ['operators'],
  'guides/prevent-duplicates': ['administrators', 'assistants'],
  'guides/sign-in-with-a-passkey': ['users', 'administrators'],
  'guides/use-the-command-line': ['developers', 'administrators'],
  'guides/who-sees-what': ['administrators', 'assistants'],
  'reference/access': ['administrators', 'assistants'],
  'reference/audit': ['administrators', 'developers'],
  'reference/cli': ['developers', 'administrators'],
  'reference/cli-metadata': ['developers', 'administrators'],
  'reference/configuration': ['operators'],
  'reference/expressions': ['administrators', 'assistants'],
  'reference/limits': ['developers', 'operators'],
  'reference/metadata': ['developers', 'administrators', 'assistants'],
  'reference/operations-cluster': ['operators'],
  'reference/reliability': ['operators'],
  'reference/retention': ['operators', 'administrators'],
  'reference/screens': ['developers', 'administrators'],
  'reference/security': ['operators', 'administrators'],
  'reference/transitions': ['developers', 'administrators', 'assistants'],
};

/** null: a page that is no guide, such as that of an error. */
export const audienceOf = (path: string): readonly Audience[] | null =>
  OTHERS[path] ?? (/^(guides|reference)\//.test(path) ? ['developers', 'assistants'] : null);
