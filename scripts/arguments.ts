/**
 * The arguments of a command: one that it does not know is refused before anything is done, and `--help` prints how it is
 * used and ends it with exit code 0.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util';

interface Command {
  readonly name: string;
  /** From "npm run" on. */
  readonly usage: string;
  /** When it could not do what was asked; default 1. */
  readonly exitCode?: number;
}

/** Arguments as node:util parses them. */
export function readArguments<const T extends ParseArgsConfig>(
  command: Command,
  config: T,
): ReturnType<typeof parseArgs<T>> {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    console.log(`Usage: ${command.usage}`);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    return refuse(command, error instanceof Error ? error.message : String(error));
  }
}

/** Ends the process: its arguments make no sense. */
export function refuse({ name, usage, exitCode = 1 }: Command, problem: string): never {
  console.error(`${name}: ${problem}\nUsage: ${usage}`);
  process.exit(exitCode);
}
