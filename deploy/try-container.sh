#!/bin/sh
# Tries what the Dockerfile says without an engine: a root folder with Node, tini and the package, mounted read-only, in
# namespaces of its own, as user 10001, with tini as process 1. Needs root, unshare and tini; `npm run build` comes first.
#   deploy/try-container.sh [FOLDER]
# Prints one line for each thing that holds, and ends with 1 at the first that does not.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d)}
root=$work/root
tini=$(command -v tini || command -v tini-static || true)
[ -n "$tini" ] || { echo "tini is not installed" >&2; exit 2; }

# A program with the libraries that it needs.
put() {
  mkdir -p "$root$(dirname "$2")"
  cp -L "$1" "$root$2"
  ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    [ -e "$root$library" ] || cp -L "$library" "$root$library"
  done
}

mkdir -p "$root/tmp" "$root/proc" "$root/etc/holdfast" "$root/var/lib/holdfast" "$root/var/log/holdfast" "$root/opt/holdfast/node_modules/holdfast"
mkdir -p "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
put "$(node -p process.execPath)" /usr/local/bin/node
put "$tini" /usr/bin/tini
put /bin/sh /bin/sh
put /bin/sleep /bin/sleep
put /usr/bin/env /usr/bin/env
cp -R "$here/dist" "$here/package.json" "$root/opt/holdfast/node_modules/holdfast/"
ln -sf /opt/holdfast/node_modules/holdfast/dist/cli/start.cjs "$root/usr/local/bin/holdfast"
chmod +x "$root/opt/holdfast/node_modules/holdfast/dist/cli/start.cjs"
# The one beside this, without what only its own machine has: a certificate, tokens, a name and a port.
node -p "
  const { tls, tokensFile, hosts, ...rest } = JSON.parse(fs.readFileSync('$here/deploy/config.json', 'utf8'))
  JSON.stringify({ ...rest, listen: '127.0.0.1:0' })" > "$root/etc/holdfast/config.json"
chmod 644 "$root/etc/holdfast/config.json"
# What the image's volumes are: the only places that it may write to.
mkdir -p "$work/volume" "$work/logs"
chown 10001:10001 "$work/volume" "$work/logs"
chmod 700 "$work/volume" "$work/logs"

# Inside: read-only root, the volumes, proc of the new namespace; then the user and the entry point of the image.
cat > "$work/inside" <<INSIDE
set -eu
mount --bind "$root" "$root"
mount --bind "$work/volume" "$root/var/lib/holdfast"
mount --bind "$work/logs" "$root/var/log/holdfast"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
cd "$root"
exec chroot --userspec=10001:10001 "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/ NODE_ENV=production \
  /usr/bin/tini -- holdfast serve --config /etc/holdfast/config.json
INSIDE
unshare --fork --pid --mount --propagation private sh "$work/inside" > "$work/out" 2> "$work/err" &
outer=$!
trap 'kill -KILL $outer 2>/dev/null || true' EXIT

fail() {
  echo "not so: $1" >&2
  cat "$work/out" "$work/err" >&2
  exit 1
}
ok() { echo "ok: $1"; }

tries=0
until grep -q '^Listening' "$work/out" 2>/dev/null; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || fail "it listens"
  sleep 0.1
done
ok "listens ($(head -1 "$work/out"))"

first=$(pgrep -P "$outer")
server=$(pgrep -P "$first")
[ "$(cat "/proc/$first/comm")" = tini ] || fail "tini is the first process"
grep -q '^NSpid:.*[[:space:]]1$' "/proc/$first/status" || fail "tini is process 1"
ok "tini is process 1"
grep -q '^Uid:[[:space:]]*10001[[:space:]]*10001' "/proc/$server/status" || fail "the server is user 10001"
ok "the server is user 10001"

# As docker exec would.
inside() { nsenter --target "$server" --pid --mount --root --wd --setuid 10001 --setgid 10001 /bin/sh -c "$1"; }
url=$(sed -n 's/.*(\(http:[^)]*\)).*/\1/p' "$work/out")
node -e "fetch('$url/ready').then((r) => process.exit(r.status === 200 ? 0 : 1))" || fail "it is ready"
ok "it is ready"
# Not even root could: it is the mount that forbids it.
nsenter --target "$server" --pid --mount --root --wd /bin/sh -c 'echo x > /opt/x' 2>&1 | grep -qi 'read-only' || fail "the root is read-only"
inside 'echo x > /var/lib/holdfast/x' || fail "the volume can be written"
ok "the root is read-only"
[ -s "$work/volume/state.json" ] || node -e "
  const json = { 'content-type': 'application/json', 'holdfast-request': '1' }
  fetch('$url/acquire', { method: 'POST', headers: json, body: '{\"name\":\"a\",\"ttl\":200}' }).then((r) => process.exit(r.status === 200 ? 0 : 1))" ||
  fail "it grants locks"
[ -s "$work/volume/state.json" ] || fail "it keeps its state in the volume"
ok "it keeps its state in the volume"
grep -q '"what":"start"' "$work/logs/audit.log" || fail "it records in the volume for logs"
ok "it records in the volume for logs"

# Orphans of a process that is gone fall to process 1. Node would leave them as zombies.
inside 'for i in 1 2 3 4 5; do (sleep 0.2 &) ; done; exit 0'
sleep 1.5
zombies=$(for p in $(pgrep -P "$first") ; do cat "/proc/$p/stat" 2>/dev/null; done | grep -c ') Z ' || true)
[ "$zombies" = 0 ] || fail "orphans are waited for ($zombies zombies)"
ok "orphans are waited for"

inside 'kill -HUP 1'
sleep 0.5
kill -0 "$server" 2>/dev/null || fail "SIGHUP does not end it"
ok "SIGHUP to process 1 reaches the server, and does not end it"
kill -TERM "$first"
code=0
wait "$outer" || code=$?
trap - EXIT
[ "$code" = 0 ] || fail "SIGTERM ends it with 0 (was $code)"
grep -q '"event":"stopped"' "$work/err" || fail "it stops in order"
ok "SIGTERM to process 1 stops it in order"
