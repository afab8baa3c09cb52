/** The file of a StateModel. */
import { Type } from 'typebox';
import { type BodyOf, componentType } from '../component.ts';
import { API_NAME, apiName, flag, group, listOf, optional, shownFlag, text } from '../schema.ts';
import { transitionProperties, transitionTexts } from './transitions-and-actions.ts';

const TRANSITIONS_MAX = 50;
export const STATES_MAX = 100;

const state = (description: string) => Type.String({ minLength: 1, maxLength: 255, description });

export const STATE_MODEL = componentType('StateModel', {
  apiName: apiName('Stable name.'),
  object: apiName('The object that it belongs to.'),
  active: optional(flag(true, 'Records are held to it; an object has one active state model.')),
  field: Type.String({ pattern: API_NAME, description: 'A restricted picklist of the object: the state.' }),
  initial: state('State of a new record.'),
  allowDirectEdit: shownFlag(false, 'The state may also be changed like any other field.'),
  states: optional(
    listOf(
      group(
        { value: state('Value of the picklist.'), description: optional(text('Meaning of the state.')) },
        'One state.',
      ),
      'The states; by default all active values of the picklist.',
      STATES_MAX,
    ),
  ),
  transitions: optional(
    listOf(
      group(
        {
          key: apiName('Stable name, unique over the transitions and actions of the object.'),
          ...transitionTexts,
          from: listOf(state('A state.'), 'States in which it can be taken.', STATES_MAX),
          to: state('State in which it ends.'),
          ...transitionProperties,
        },
        'One transition.',
      ),
      'Transitions, in the order in which they are listed.',
      TRANSITIONS_MAX,
    ),
  ),
});

export type StateModelBody = BodyOf<typeof STATE_MODEL>;
