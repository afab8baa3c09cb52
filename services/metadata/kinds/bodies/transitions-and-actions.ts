/** Common to the files of transitions and custom actions. Source: docs/reference/transitions.md. */
import { type Static, Type } from 'typebox';
import {
  API_NAME,
  expression,
  FULL_NAME,
  group,
  label,
  listOf,
  mapOf,
  optional,
  shownChoice,
  shownFlag,
  text,
} from '../schema.ts';

const EFFECTS_MAX = 20;
const EFFECT_FIELDS_MAX = 100;

const effect = group(
  {
    verb: Type.Enum(['updateFields', 'createRecord', 'sendNotification', 'emitEvent', 'requestApproval'], {
      description: 'Kind of the effect. Not available yet: emitEvent, requestApproval.',
    }),
    object: optional(Type.String({ pattern: API_NAME, description: 'createRecord: of which object.' })),
    fields: optional(
      mapOf(
        API_NAME,
        expression('An expression over the record and the input.'),
        'updateFields, createRecord: expressions by field.',
        EFFECT_FIELDS_MAX,
      ),
    ),
    type: optional(
      Type.String({ pattern: API_NAME, description: 'sendNotification: its type; emitEvent: name of the event.' }),
    ),
    to: optional(
      Type.String({
        pattern: API_NAME,
        description: 'sendNotification: owner, actor, or a field that refers to a user.',
      }),
    ),
    template: optional(
      Type.String({
        pattern: API_NAME,
        description:
          'sendNotification: the template of the object that it says; none: the names of object and transition.',
      }),
    ),
    data: optional(
      mapOf(
        API_NAME,
        expression('An expression over the record and the input.'),
        'emitEvent: the data of the event, expressions by name.',
        EFFECT_FIELDS_MAX,
      ),
    ),
  },
  'One effect.',
);

/** Keys of a transition or action in its file, after the ones that name it. */
export const transitionProperties = {
  guard: optional(expression('Expression; it must be true.')),
  guardMessage: optional(text('The message when the guard is not true.', 1_000)),
  permission: optional(
    Type.String({ pattern: FULL_NAME, description: '`<Object>.<key>` that a profile or permission set must name.' }),
  ),
  risk: shownChoice(
    ['low', 'medium', 'high'],
    'high',
    'What can go wrong when it is done by mistake; agents wait for a person where it is high.',
  ),
  requiresComment: shownFlag(false, 'A comment is required.'),
  input: optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema 2020-12 of what is sent along.' }),
  ),
  effects: optional(listOf(effect, 'Effects in the same transaction, in this order.', EFFECTS_MAX)),
};

export const transitionTexts = {
  label: label('As people read it.'),
  description: optional(text('Purpose, for readers.')),
};

const transition = group({ ...transitionTexts, ...transitionProperties }, 'A transition or an action.');

/** A transition in the file of its state model, or the file of a custom action. */
export type TransitionBody = Static<typeof transition>;
export type EffectBody = Static<typeof effect>;
