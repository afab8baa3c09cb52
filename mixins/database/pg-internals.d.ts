/** The parts of pg and pg-protocol that the page client extends; the packages' types leave them out or hide them. */
declare module 'pg-protocol/dist/parser.js' {
  export interface Message {
    name: string;
    length: number;
  }

  export class Parser {
    parse(buffer: Buffer, callback: (message: Message) => void): void;
    /** A message of `length` bytes whose body starts at `offset`. */
    handlePacket(offset: number, code: number, length: number, bytes: Buffer): Message;
  }
}

declare module 'pg-protocol/dist/serializer.js' {
  export const serialize: {
    bind(message: {
      readonly statement: string | undefined;
      readonly values: readonly unknown[] | undefined;
      readonly valueMapper: (value: unknown) => unknown;
    }): Buffer;
    execute(): Buffer;
    sync(): Buffer;
  };
}

declare module 'pg/lib/utils.js' {
  const utils: { prepareValue(value: unknown): unknown };
  export default utils;
}
