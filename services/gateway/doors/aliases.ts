/**
 * Output of `listAliases` for operators: the public operations and the pages, in the form in which moleculer-web lists
 * its own aliases. They are for reading only: an alias with an action would let requests past the pipeline.
 */
import { AUTH_ROOTS } from '../../../contracts/auth.ts';
import { API_PREFIX, CALENDARS_ROOT } from '../../../lib/addresses.ts';
import type { Operation } from '../../../lib/operation.ts';
import { DOCUMENT_PAGES } from '../public/versions.ts';
import { PAGE_PATHS, PAGE_ROOTS } from './pages.ts';

interface PublicAlias {
  /** null: the gateway answers by itself. */
  actionName: string | null;
  path: string;
  fullPath: string;
  methods: string;
  routePath: string;
}

export function publicAliases(operations: readonly Operation[]): PublicAlias[] {
  const alias = (actionName: string | null, methods: string, path: string, routePath = ''): PublicAlias => ({
    actionName,
    path: path.slice(1),
    fullPath: `${routePath}${path}`,
    methods,
    routePath: routePath || '/',
  });
  return [
    ...operations.map(({ action, method, path }) => alias(action, method, path, API_PREFIX)),
    ...[
      ...PAGE_PATHS,
      ...DOCUMENT_PAGES,
      ...PAGE_ROOTS.flatMap((root) => [root, `${root}/…`]),
      `${CALENDARS_ROOT}…`,
    ].map((path) => alias(null, 'GET', path)),
    ...AUTH_ROOTS.map((root) => alias('auth.http.handle', '*', `/${root}/…`)),
  ];
}
