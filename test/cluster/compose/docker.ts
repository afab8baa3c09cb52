/** `docker` for the shell of a test: what was typed goes to the installation, which says what to run in its place. */
import { spawn } from 'node:child_process';

const answer = await fetch(process.env['COMPOSE_CONTROL']!, {
  method: 'POST',
  body: JSON.stringify(process.argv.slice(2)),
});
const { error, command } = (await answer.json()) as {
  error?: string;
  command?: { program: string; args: string[]; env: Record<string, string>; cwd: string };
};
if (error !== undefined) {
  console.error(error);
  process.exitCode = 1;
} else if (command) {
  const { program, args, env, cwd } = command;
  spawn(program, args, { env, cwd, stdio: 'inherit' }).once('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}
