#!/usr/bin/env bash
# README's chapter on containers, with the kernel's parts of which containers are made: mount, pid and user namespaces
# and a small tmpfs. Says what it skips where these are not permitted.
# usage: container_test.sh BIN-FOLDER
set -euo pipefail
export PATH=$1:$PATH

if [ -z "${IN_CONTAINER_TEST:-}" ]; then
  if ! why=$(unshare --mount --propagation private sh -c 'mount -t tmpfs -o size=1m try /mnt' 2>&1); then
    echo "skipped: mounting in a namespace is not permitted here: $why"
    exit 0
  fi
  IN_CONTAINER_TEST=1 exec unshare --mount --propagation private bash "$0" "$@"
fi

folder=$(mktemp -d)
daemon=
stop_daemon() {
  [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; } || true
  daemon=
}
trap 'stop_daemon; rm -rf --one-file-system "$folder"/dir "$folder"/log; umount "$folder"/shared 2>/dev/null || true; rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*"; cat "$folder/log" 2>/dev/null; exit 1; }
expect() { grep -qF -- "$2" <<<"$1" || fail "expected '$2' in: $1"; }

mkdir "$folder/dir" "$folder/shared" "$folder/inside"
mount -t tmpfs -o size=64m,mode=0755 fingerpost "$folder/shared"
chmod 755 "$folder"
# With pids and mounts of its own, and the shared folder read-only.
worker() {
  unshare --mount --pid --fork --propagation private bash -c '
    mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"' \
    "$folder/shared" "$folder/inside" "$@"
}
export FINGERPOST_DIRECTORY=$folder/dir/directory.db
start_daemon() {  # arguments: a command in front of it
  FINGERPOST_RUNDIR=$folder/shared "$@" fingerpostd --name orders --directory "$FINGERPOST_DIRECTORY" \
    --state-dir "$folder/dir" --mode 0644 2>>"$folder/log" &
  daemon=$!
  for _ in $(seq 150); do
    FINGERPOST_OWNER=any fingerpost status "$folder/shared/fingerpost.orders" --ready >/dev/null && return
    sleep 0.1
  done
  fail 'the syncer is not ready'
}
ask() { FINGERPOST_RUNDIR=$folder/inside worker "$@" fingerpost resolve orders acme 2>&1 || true; }  # arguments: in front

fingerpost init --buckets 64 >/dev/null
fingerpost shard add s1 --primary db1:5432 >/dev/null
fingerpost bucket assign >/dev/null
fingerpost tenant create acme --shard s1 >/dev/null
start_daemon

echo '- a worker with a read-only mount and pids of its own resolves, cannot write, and is woken by a commit'
expect "$(ask)" 'acme	found	s1'
expect "$(worker touch "$folder/inside/x" 2>&1 || true)" 'Read-only file system'
version=$(fingerpost status "$folder/shared/fingerpost.orders" --json | grep -o '"version":[0-9]*' | cut -d: -f2)
FINGERPOST_RUNDIR=$folder/inside worker fingerpost wait orders --version $((version + 1)) >"$folder/dir/waited" &
waiting=$!
sleep 0.3
fingerpost tenant create zen --shard s1 >/dev/null
wait "$waiting" || fail 'the wait was not answered'
expect "$(cat "$folder/dir/waited")" "version $((version + 1))"

echo '- a second syncer with pids of its own is refused'
status=0
second=$(FINGERPOST_RUNDIR=$folder/shared unshare --pid --fork fingerpostd --name orders \
  --directory "$FINGERPOST_DIRECTORY" --state-dir "$folder/dir" 2>&1) || status=$?
expect "$second" 'another writer holds the lock'
[ "$status" -eq 4 ] || fail "it ended with status $status"

echo '- a growth beyond the tmpfs is refused by name, and what was there is served'
fallocate -l 58m "$folder/shared/somebody-elses"
awk 'BEGIN { print "entry_id,shard_id"; for (i = 0; i < 40000; ++i) printf "tenant-%029d,s1\n", i }' >"$folder/dir/many.csv"
fingerpost import "$folder/dir/many.csv" >/dev/null
for _ in $(seq 300); do
  grep -q 'the table cannot grow' "$folder/log" && break
  sleep 0.1
done
expect "$(cat "$folder/log")" "bytes, $folder/shared has"
expect "$(cat "$folder/log")" '(limit: tmpfs size)'
expect "$(ask)" 'acme	found	s1'
rm "$folder/shared/somebody-elses"

echo '- a worker whose user namespace does not map the owner believes the sole writer of the folder, else FINGERPOST_OWNER'
stranger=(setpriv --reuid 64123 --regid 64124 --clear-groups)
if ! why=$("${stranger[@]}" unshare --user --map-root-user true 2>&1); then
  echo "  skipped: a user namespace is not permitted here: $why"
  exit 0
fi
ask_from_inside() { ask "${stranger[@]}" unshare --user --map-root-user; }
expect "$(ask_from_inside)" 'acme	found	s1'
chmod 1777 "$folder/shared"
expect "$(ask_from_inside)" 'FINGERPOST_OWNER names another owner to trust'
expect "$(FINGERPOST_OWNER=65534 ask_from_inside)" 'acme	found	s1'
expect "$(FINGERPOST_OWNER=any ask_from_inside)" 'acme	found	s1'
expect "$(FINGERPOST_OWNER=no-such-account ask_from_inside)" "no user is named 'no-such-account'"
chmod 755 "$folder/shared"

echo '- a syncer in a user namespace serves workers outside of it'
stop_daemon
rm "$folder"/shared/*
chown -R 64123:64124 "$folder/dir" "$folder/shared"
start_daemon "${stranger[@]}" unshare --user --map-root-user
expect "$(ask)" 'acme	found	s1'
chmod 1777 "$folder/shared"
expect "$(ask)" 'is owned by uid 64123, not by root'
expect "$(FINGERPOST_OWNER=64123 ask)" 'acme	found	s1'
echo 'all as the README says'
