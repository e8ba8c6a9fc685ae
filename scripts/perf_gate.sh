#!/usr/bin/env bash
# perf_gate.sh BASE [DIR]: is this tree slower, fatter or wrong against the commit BASE? Builds both,
# lets `kvmark ab` judge configs/ci.yaml, and leaves everything in DIR (results/gate). Exit codes:
#   0 fine   1 regression   3 a case failed   4 a result is invalid
#   5 nothing that both builds know, or no times (with --strict: undecided, too)
#   2 no verdict: a build that fails, a commit that is not there   130 interrupted
#
# Runs on any CI system that gives two cores for itself; needs git, and root or sudo for packages
# that are missing. $KVMARK_GATE_OPTIONS goes to `kvmark ab` ("--strict").
set -euo pipefail

stop() {
  echo "perf_gate: $*" >&2
  exit 2
}

case ${1:---help} in
  -*) sed -n '2,10s/^# \?//p' "$0" >&2; exit 2 ;;
esac
tree=$(dirname "$0")/..
results=$(realpath -m "${2:-$tree/results/gate}")
cd "$tree" || stop "no way into $tree"
command -v git >/dev/null || stop "git is missing"
git rev-parse --git-dir >/dev/null || stop "this is no git repository, or not one that git trusts"
work=build/gate
commit=$(git rev-parse --verify --quiet "$1^{commit}") ||
  stop "no commit '$1' here; is the history fetched (fetch-depth: 0)?"
[ ! -e "$results" ] || stop "$results is there already; name another folder"

build() {  # build SOURCE NAME
  cmake -S "$1" -B "$work/$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVMARK_TESTS=OFF \
    -DKVMARK_MICRO=OFF --log-level=WARNING &&
    cmake --build "$work/$2" --target kvmark
}

remove_base() { git worktree remove --force "$work/base-source" 2>/dev/null || true; }

scripts/setup.sh build check || stop "packages are missing"
remove_base
rm -rf "$work/base-source" || stop "$work/base-source cannot be removed"
git worktree add --quiet --force --detach "$work/base-source" "$commit" || stop "no place for the base"
trap remove_base EXIT
build "$work/base-source" base >&2 || stop "the base does not build"
build . head >&2 || stop "this tree does not build"

options=()
[ -z "${KVMARK_GATE_OPTIONS:-}" ] || read -r -d '' -a options <<<"$KVMARK_GATE_OPTIONS" || true
code=0
"$work/head/bin/kvmark" ab --base "$work/base/bin/kvmark" --new "$work/head/bin/kvmark" \
  configs/ci.yaml -o "$results" --out "md=$results/summary.md" --out "json=$results/verdict.json" \
  --out "junit=$results/junit.xml" --out "github=$results/annotations.txt" "${options[@]}" || code=$?
exit "$code"
