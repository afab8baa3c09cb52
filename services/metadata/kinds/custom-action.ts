/** CustomAction: something that can be done with a record, whatever its state. */
import { transitionProperties, transitionTexts } from './bodies/transitions-and-actions.ts';
import { type BodyOf, componentKey, componentType, findComponent } from './component.ts';
import { defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { apiName, flag, optional } from './schema.ts';
import { checkKeys } from './state-model.ts';
import {
  activeModel,
  checkTransition,
  compileTransition,
  isTransitionAffected,
  transitionReferences,
} from './transitions-and-actions.ts';

const ACTIONS_PER_OBJECT_MAX = 50;

export const CUSTOM_ACTION = componentType('CustomAction', {
  apiName: apiName('Stable name; the key under which it is executed.'),
  object: apiName('The object that it belongs to.'),
  active: optional(flag(true, 'It is offered.')),
  ...transitionTexts,
  ...transitionProperties,
});

const references = (body: BodyOf<typeof CUSTOM_ACTION>): Reference[] => [
  { type: 'CustomObject', fullName: body.object, pointer: '/object' },
  ...transitionReferences(body.object, body, ''),
];

export const customAction = defineKind({
  ...CUSTOM_ACTION,
  memberFormat: '<Object>.<Action>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'StateModel', 'CustomAction', 'NotificationTemplate'],

  references,

  check(component, context) {
    const body = component.body;
    if (!context.after.has(componentKey('CustomObject', body.object))) return;
    if (body.object === 'User') {
      context.problem('STATE_MODEL_INVALID', component, '/object', 'Users have no custom actions.');
      return;
    }
    const stateField = activeModel(context, body.object)?.field ?? null;
    const before = findComponent(context.before, CUSTOM_ACTION, component.fullName)?.body;
    checkTransition(component, context, { object: body.object, body, before, pointer: '', stateField });
  },

  isAffected: ({ body }, changes) => isTransitionAffected(references(body), changes),

  checkAll(context) {
    checkPerObject(context, CUSTOM_ACTION, 'actions', ACTIONS_PER_OBJECT_MAX);
    checkKeys(context);
  },

  compile(component, draft) {
    const body = component.body;
    if (body.active === false) return;
    const permission = body.permission ?? `${body.object}.${body.apiName}`;
    draft.objects[body.object]?.actions.push(compileTransition(body.apiName, body, permission));
  },
});
