#!/usr/bin/env bash
# check_gate.sh [DIR]: does the gate judge rightly? Five commits behind this one, in a clone of their
# own: one that changes nothing, and the four faults of tests/planted/. Shows scripts/perf_gate.sh
# each of them and compares its exit code with what it must be. Half an hour on two cores that have
# nothing else to do; the log goes to stdout, the records to DIR (results/check-gate).
set -euo pipefail
cd "$(dirname "$0")/.."

results=$(realpath -m "${1:-results/check-gate}")
tree=build/check-gate/tree
declare -A expected=([unchanged]=0 [slow_codec]=1 [wrong_codec]=4 [fat_cache]=1 [dying_engine]=3)

rm -rf "$tree"
mkdir -p "$results" build/check-gate
git clone --quiet --no-hardlinks . "$tree"
export GIT_AUTHOR_NAME=gate GIT_AUTHOR_EMAIL=gate@localhost
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
start=$(git -C "$tree" rev-parse HEAD)
echo "gate of $start, $(date -u +%Y-%m-%dT%H:%M:%SZ), $(nproc) cores"

wrong=0
for plant in unchanged slow_codec wrong_codec fat_cache dying_engine; do
  git -C "$tree" checkout --quiet --detach "$start"
  [ "$plant" = unchanged ] || git -C "$tree" apply --index "tests/planted/$plant.patch"
  git -C "$tree" commit --quiet --allow-empty -m "$plant"
  began=$SECONDS code=0
  "$tree/scripts/perf_gate.sh" "$start" "$results/$plant" 2>"$results/$plant.log" || code=$?
  verdict=right
  [ "$code" = "${expected[$plant]}" ] || { verdict=WRONG; wrong=$((wrong + 1)); }
  printf '== %s: exit code %d, expected %d: %s (%d s, building included)\n\n' \
    "$plant" "$code" "${expected[$plant]}" "$verdict" $((SECONDS - began))
done
echo "$((5 - wrong)) of 5 judged rightly"
[ "$wrong" = 0 ]
