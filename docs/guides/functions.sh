# What the guides share: shell functions around curl, for bash and zsh. In the folder of the repository:
#   source docs/guides/functions.sh
API=${API:-http://localhost:3000/api/v1}
# So that a guide can be walked in a folder of its own, and leaves nothing in this one.
REPOSITORY=${REPOSITORY:-$PWD}
# The Node that the packages bring, whatever the machine has.
PATH=$REPOSITORY/node_modules/.bin:$PATH
# Part of names and keys: a guide that is walked again makes records of its own.
RUN=$(openssl rand -hex 6)

# token_of sam: an access token of a user of the demo.
token_of() { BASE_URL=${API%/api/v1} npm --prefix "$REPOSITORY" run --silent token -- --user "$1@demo.example"; }

# call TOKEN METHOD PATH [BODY [HEADER…]]: sends a request, with an idempotency key of its own, and prints the answer. The
# body goes through standard input, so that it may be of any length.
call() {
  local token=$1 method=$2 where=$3 body=${4-}
  shift $(($# > 4 ? 4 : $#))
  local -a options=(-H "Authorization: Bearer $token" -H "Idempotency-Key: guide-$(date +%s)-$RANDOM$RANDOM")
  [ -z "$body" ] || options+=(-H 'Content-Type: application/json' --data-binary @-)
  local header
  for header in "$@"; do options+=(-H "$header"); done
  printf '%s' "$body" | curl -s -X "$method" "$API$where" "${options[@]}"
  echo
}

# seen TOKEN PATH: the header that names the version of a record as it is now.
seen() {
  echo "If-Match: $(curl -s -D - -o /dev/null "$API$2" -H "Authorization: Bearer $1" | tr -d '\r' |
    awk 'tolower($1) == "etag:" { print $2 }')"
}

# version TOKEN PATH: the same as a JSON string, for bodies that name a version.
version() { seen "$1" "$2" | node -p 'JSON.stringify(fs.readFileSync(0, "utf8").trim().slice("If-Match: ".length))'; }

# pick id: a value out of the JSON on stdin, named as JavaScript would: id, records[0].id, details.code …
pick() { node -p "JSON.parse(fs.readFileSync(0)).$1"; }

# project FOLDER: the YAML files of a folder, without its manifest, as the body of a deployment. Type and name stand in the
# first lines of each.
project() {
  node - "$1" <<'JS'
const { readdirSync, readFileSync } = require('node:fs');
const files = {};
const types = [];
for (const path of readdirSync(process.argv[2], { recursive: true }).filter((name) => name.endsWith('.yaml'))) {
  const text = readFileSync(`${process.argv[2]}/${path}`, 'utf8');
  if (/^manifest[\\/]/.test(path)) continue;
  const key = (name) => text.match(new RegExp(`^${name}: (.+)$`, 'm'))?.[1];
  if (!key('type')) continue; // A note of the command line client.
  files[path.replaceAll('\\', '/')] = text;
  types.push({ name: key('type'), members: [[key('object'), key('apiName')].filter(Boolean).join('.')] });
}
console.log(JSON.stringify({ files, package: { version: 1, types } }));
JS
}

# deploy TOKEN FOLDER: deploys the files of a folder, waits for the end, and says what became of it. Fails with what the API
# said when it was not accepted, or when nobody can say any more what has become of it.
deploy() {
  local answer id state
  answer=$(call "$1" POST /metadata/deploy "$(project "$2")")
  id=$(printf '%s' "$answer" | pick deploymentId 2> /dev/null)
  [[ $id == *-*-*-*-* ]] || { printf '%s\n' "$2: not accepted: ${answer:-no answer}" >&2; return 1; }
  while :; do
    answer=$(call "$1" GET "/metadata/deployments/$id")
    state=$(printf '%s' "$answer" | pick status 2> /dev/null)
    case $state in
      QUEUED | VALIDATING | APPLYING | CANCELING) sleep 0.2 ;;
      SUCCEEDED | FAILED | CANCELED) break ;;
      *) printf '%s\n' "$2: deployment $id: ${answer:-no answer}" >&2; return 1 ;;
    esac
  done
  echo "$2: $state"
  [ "$state" = SUCCEEDED ] || {
    printf '%s' "$answer" | pick 'blocked.map((it) => `${it.path}:${it.line} ${it.message}`).join("\n")'
    return 1
  }
}

# grant TOKEN USER PERMISSIONSET…: gives a user of the demo permission sets, in place of those they have.
grant() {
  local token=$1 user=$2 id sets
  shift 2
  sets=$(printf '"%s",' "$@")
  id=$(curl -s -G "$API/data/User" -H "Authorization: Bearer $token" \
    --data-urlencode "where={\"username\":\"$user@demo.example\"}" | pick 'records[0].id')
  call "$token" PATCH "/data/User/$id" "{\"permissionSetApiNames\":[${sets%,}]}" "$(seen "$token" "/data/User/$id")" |
    pick permissionSetApiNames
}
