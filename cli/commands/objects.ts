/** `objects`: what there is, and what may be read and written of it. */
import { act, type Program } from '../command.ts';

export function addObjects(program: Program): void {
  const objects = program.command('objects').description('objects that you can read, and their fields');
  objects
    .command('list')
    .description('list the objects')
    .action(
      act(async (run) => {
        const answer = await (await run.api()).call('schema.objects.list', {});
        run.output.result(answer, () =>
          run.output.table(
            [{ title: 'Object', whole: true }, { title: 'Label' }, { title: 'You may' }],
            answer.body.records.map(({ apiName, label, capabilities }) => [
              apiName,
              label,
              [
                'read',
                capabilities.creatable && 'create',
                capabilities.updateable && 'update',
                capabilities.deletable && 'delete',
              ]
                .filter(Boolean)
                .join(', '),
            ]),
          ),
        );
      }),
    );
  objects
    .command('describe')
    .description('show the fields of an object')
    .argument('<object>')
    .option('--schema', 'print the JSON Schema of its bodies')
    .action(
      act(async (run, objectApiName, options) => {
        const api = await run.api();
        if (options.schema) {
          const schema = await api.call('schema.objects.getSchema', { path: { objectApiName } });
          run.output.result(schema, () => run.output.data(JSON.stringify(schema.body, null, 2)));
          return;
        }
        const answer = await api.call('schema.objects.describe', { path: { objectApiName } });
        const { label, apiName, description, nameField, stateModel, recordTypes, fields } = answer.body;
        run.output.result(answer, () => {
          const { output } = run;
          if (output.terminal.pretty) {
            output.line(`${output.terminal.paint('bold', apiName)}  ${label}`);
            if (description) output.line(description);
            output.line(
              [
                `name: ${nameField}`,
                stateModel ? `states: ${stateModel}` : '',
                recordTypes.length ? `record types: ${recordTypes.map((type) => type.apiName).join(', ')}` : '',
              ]
                .filter(Boolean)
                .join('   '),
            );
            output.line();
          }
          output.table(
            [{ title: 'Field', whole: true }, { title: 'Type' }, { title: 'Label' }, { title: 'Rules' }],
            fields.map((field) => [field.apiName, typeText(field), field.label, rulesText(field)]),
          );
        });
      }),
    );
}

interface Described {
  fieldType: string;
  valueType: string;
  length: number | null;
  precision: number | null;
  scale: number | null;
  referenceTo: readonly string[];
  picklistValues: readonly { value: string; active: boolean }[] | null;
  required: boolean;
  unique: boolean;
  externalId: boolean;
  creatable: boolean;
  updateable: boolean;
  calculated: boolean;
}

function typeText({ valueType, length, precision, scale, referenceTo }: Described): string {
  if (referenceTo.length) return `${valueType} → ${referenceTo.join(', ')}`;
  if (precision !== null) return `${valueType}(${precision},${scale ?? 0})`;
  return length === null ? valueType : `${valueType}(${length})`;
}

const rulesText = ({
  required,
  unique,
  externalId,
  creatable,
  updateable,
  calculated,
  fieldType,
  picklistValues,
}: Described): string =>
  [
    required && 'required',
    unique && 'unique',
    externalId && 'external id',
    calculated ? `computed (${fieldType})` : !creatable && !updateable ? 'read only' : !updateable && 'only on create',
    picklistValues
      ?.filter(({ active }) => active)
      .map(({ value }) => value)
      .join(' | '),
  ]
    .filter(Boolean)
    .join(', ');
