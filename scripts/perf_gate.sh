#!/usr/bin/env bash
# perf_gate.sh BASE [DIR]: is this tree slower, fatter or wrong against the commit BASE? Builds both,
# lets `kvmark ab` judge configs/ci.yaml, leaves everything in DIR (results/gate) and ends with the
# gate's exit code: 0 fine, 1 regression, 3 a case failed, 4 a result is invalid, 2 no verdict.
#
# Runs on any CI system that gives two cores for itself; needs git and the packages of `make build`.
# $KVMARK_GATE_OPTIONS goes to `kvmark ab` ("--strict").
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { sed -n '2,8s/^# \?//p' "$0" >&2; exit 2; }
work=build/gate
results=${2:-results/gate}
commit=$(git rev-parse --verify --quiet "$1^{commit}") || {
  echo "perf_gate: no commit '$1' here; is the history fetched (fetch-depth: 0)?" >&2
  exit 2
}
[ ! -e "$results" ] || { echo "perf_gate: $results is there already; name another folder" >&2; exit 2; }

build() {  # build SOURCE NAME
  cmake -S "$1" -B "$work/$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVMARK_TESTS=OFF \
    -DKVMARK_MICRO=OFF --log-level=WARNING
  cmake --build "$work/$2" --target kvmark
}

scripts/setup.sh build check
git worktree prune
rm -rf "$work/base-source"
git worktree add --quiet --force --detach "$work/base-source" "$commit"
trap 'git worktree remove --force "$work/base-source"' EXIT
{
  build "$work/base-source" base
  build . head
} >&2

options=()
[ -z "${KVMARK_GATE_OPTIONS:-}" ] || read -ra options <<<"$KVMARK_GATE_OPTIONS"
code=0
"$work/head/bin/kvmark" ab --base "$work/base/bin/kvmark" --new "$work/head/bin/kvmark" \
  configs/ci.yaml -o "$results" --out "md=$results/summary.md" --out "junit=$results/junit.xml" \
  --out "github=$results/annotations.txt" "${options[@]}" || code=$?
exit "$code"
