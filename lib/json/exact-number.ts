/**
 * A number of a JSON text that a double cannot hold exactly, kept as it was written. The strict parser creates it,
 * field types read `text`, and it is serialized as the same number.
 */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(this.text);
  }
}
