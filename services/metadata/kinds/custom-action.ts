/** CustomAction: something that can be done with a record, whatever its state. */
import { Type } from 'typebox';
import type { ActMeta } from '../../../lib/schema/snapshot.ts';
import { type ActBody, activeModel, actKeys, actNames, actReferences, checkAct, compileAct } from './acts.ts';
import { componentKey, type Kind } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { apiName, flag, optional } from './schema.ts';
import { checkKeys } from './state-model.ts';

interface ActionBody extends ActBody {
  readonly apiName: string;
  readonly object: string;
  readonly active?: boolean;
}

const ACTIONS_PER_OBJECT_MAX = 50;

export const customAction: Kind = {
  type: 'CustomAction',
  memberFormat: '<Object>.<Action>',
  pathPattern: 'objects/{object}/actions/{apiName}.yaml',
  child: true,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('CustomAction'),
      apiName: apiName('Stable name; the key under which it is executed.'),
      object: apiName('The object that it belongs to.'),
      active: optional(flag(true, 'It is offered.')),
      ...actNames,
      ...actKeys,
    },
    { additionalProperties: false },
  ),

  references(body) {
    const action = body as ActionBody;
    return [
      { type: 'CustomObject', fullName: action.object, pointer: '/object' },
      ...actReferences(action.object, action, ''),
    ];
  },

  check(component, context) {
    const body = component.body as ActionBody;
    if (!context.after.has(componentKey('CustomObject', body.object))) return;
    if (body.object === 'User') {
      context.problem('STATE_MODEL_INVALID', component, '/object', 'Users have no custom actions.');
      return;
    }
    const stateField = (activeModel(context, body.object)?.['field'] as string | undefined) ?? null;
    checkAct(component, context, { object: body.object, body, pointer: '', stateField });
  },

  checkAll(context) {
    checkPerObject(context, 'CustomAction', 'actions', ACTIONS_PER_OBJECT_MAX);
    checkKeys(context);
  },

  compile(component, draft) {
    const body = component.body as ActionBody;
    if (body.active === false) return;
    const permission = body.permission ?? `${body.object}.${body.apiName}`;
    (draft.objects[body.object]?.actions as ActMeta[] | undefined)?.push(compileAct(body.apiName, body, permission));
  },
};
