/** `npm run` for bash: the scripts of the project as they are, without npm's start of a second. Takes `NODE` and `ROOT`. */
export const NPM_RUN = `
npm() {
  shift; [ "$1" != --silent ] || shift
  local name=$1; shift; [ "\${1-}" != -- ] || shift
  "$NODE" "$ROOT/scripts/$name.ts" "$@"
}
`;
