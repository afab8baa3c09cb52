/**
 * Names without `__c`: the objects and fields of the platform's templates. A tenant that lacks one of them may take it
 * up, so that a configuration can go from one tenant to another; further ones are refused.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { locate } from '../../../lib/metadata/paths.ts';
import { componentKey } from './component.ts';

const TEMPLATES = fileURLToPath(new URL('../../../templates', import.meta.url));

const SHIPPED: ReadonlySet<string> = new Set(
  ['core', 'erp'].flatMap((template) =>
    readdirSync(`${TEMPLATES}/${template}/objects`, { recursive: true, encoding: 'utf8' }).flatMap((path) => {
      const found = locate(`objects/${path.replaceAll('\\', '/')}`);
      return found ? [componentKey(found.type, found.fullName)] : [];
    }),
  ),
);

export const isShipped = (type: 'CustomObject' | 'CustomField', fullName: string): boolean =>
  SHIPPED.has(componentKey(type, fullName));
