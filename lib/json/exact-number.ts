/**
 * A number of a JSON text that a double cannot hold exactly, kept as it was written. The strict parser makes it; the
 * field types read `text`; in JSON it is the same number again.
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
