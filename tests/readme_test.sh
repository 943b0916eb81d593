#!/usr/bin/env bash
# README's tutorial as it is printed, line by line, and its worker, compiled and run.
# usage: readme_test.sh README BIN-FOLDER CXX ROOT LIB...
set -euo pipefail
readme=$1 bin=$2 cxx=$3 root=$4
shift 4

folder=$(mktemp -d)
shm=$(mktemp -d /dev/shm/fingerpost-readme.XXXXXX)
daemons() { pgrep -f -- "--directory $folder/directory.db" || true; }
clean_up() {
  for pid in $(daemons); do kill -9 "$pid" 2>/dev/null || true; done
  rm -rf "$folder" "$shm"
}
trap clean_up EXIT
export FINGERPOST_RUNDIR=$shm PATH=$bin:$PATH
cd "$folder"

# The block after the heading that begins with `language`.
block() {
  awk -v heading="## $2" -v fence="^\`\`\`$1\$" '
    $0 == heading { here = 1 }
    here && !inside && $0 ~ fence { inside = 1; next }
    inside && /^```$/ { exit }
    inside { print }' "$readme"
}

block sh 'Five minutes' >tutorial.sh
block cpp 'In a C++ worker' >worker.cpp
[ "$(wc -l <tutorial.sh)" -gt 20 ] && [ "$(wc -l <worker.cpp)" -gt 15 ] || { echo 'the README lost its blocks'; exit 1; }

bash -ec "$(cat tutorial.sh)" >tutorial.out 2>tutorial.err || { cat tutorial.out tutorial.err; exit 1; }
cat tutorial.out
grep -q 's2' tutorial.out && grep -q 's1' tutorial.out

"$cxx" -std=c++20 -I"$root" worker.cpp -o worker "$@"
./worker tutorial acme bigbank zen | tee worker.out
[ "$(wc -l <worker.out)" -eq 3 ]
grep -q '^acme -> db1:5432 epoch ' worker.out
for n in 1 2 3 4 5 6 7 8 9 10; do [ -z "$(daemons)" ] && break; sleep 0.2; done
[ -z "$(daemons)" ] || { echo 'a syncer of the tutorial is still there'; exit 1; }
