#!/usr/bin/env bash
# check_gate.sh [DIR]: does the gate judge rightly? Five commits behind this one, in a clone of their
# own: one that changes nothing, and the four faults of tests/planted/. Shows scripts/perf_gate.sh
# each of them; its exit code, and every row and metric that it names, must be those of the fault.
# Takes some minutes of two cores that have nothing else to do; the log goes to stdout, verdicts and
# records to the new folder DIR (results/check-gate).
set -euo pipefail
cd "$(dirname "$0")/.."

results=$(realpath -m "${1:-results/check-gate}")
tree=build/check-gate/tree
# What must come of each: the exit code, and a pattern of all that is named.
declare -A expected=(
  [unchanged]='0'
  [slow_codec]='1 int8:g32.* latency\.'
  [wrong_codec]='4 int4:g32.* invalid'
  [fat_cache]='1 memory\.kv_'
  [dying_engine]='3 paged:16.* failed'
)

[ ! -e "$results" ] || { echo "check_gate: $results is there already; name another folder" >&2; exit 2; }
rm -rf "$tree"
mkdir -p "$results" build/check-gate
git clone --quiet --no-hardlinks . "$tree"
export GIT_AUTHOR_NAME=gate GIT_AUTHOR_EMAIL=gate@localhost
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
start=$(git -C "$tree" rev-parse HEAD)
echo "gate of $start, $(date -u +%Y-%m-%dT%H:%M:%SZ), $(nproc) cores"

named() {  # named VERDICT: a line for each row that broke and each metric that is worse
  /usr/bin/env python3 - "$1" <<'PYTHON'
import json, sys
for case in json.load(open(sys.argv[1], encoding="utf-8"))["cases"]:
    if case["broke"]:
        print(case["label"], case["status"])
    for metric in case["metrics"]:
        if metric["verdict"] == "worse":
            print(case["label"], metric["metric"])
PYTHON
}

wrong=0
for plant in unchanged slow_codec wrong_codec fat_cache dying_engine; do
  git -C "$tree" checkout --quiet --detach "$start"
  [ "$plant" = unchanged ] || git -C "$tree" apply --index "tests/planted/$plant.patch"
  git -C "$tree" commit --quiet --allow-empty -m "$plant"
  began=$SECONDS code=0
  "$tree/scripts/perf_gate.sh" "$start" "$results/$plant" 2>"$results/$plant.log" || code=$?
  read -r right pattern <<<"${expected[$plant]}"
  found=$(named "$results/$plant/verdict.json" || echo "no verdict")
  verdict=right
  [ "$code" = "$right" ] || verdict=WRONG
  if [ -z "$pattern" ]; then
    [ -z "$found" ] || verdict=WRONG
  elif [ -z "$found" ] || grep -qvE "$pattern" <<<"$found"; then
    verdict=WRONG
  fi
  [ "$verdict" = right ] || wrong=$((wrong + 1))
  printf '== %s: exit code %d, expected %d; named: %s: %s (%d s, building included)\n\n' "$plant" \
    "$code" "$right" "${found:-nothing}" "$verdict" $((SECONDS - began))
done
echo "$((5 - wrong)) of 5 judged rightly"
[ "$wrong" = 0 ]
