#!/usr/bin/env bash
# lint.sh [--all]: format, include directions, shell and Python syntax, clang-tidy. clang-tidy reads
# the files changed since origin's main branch (on it: since the last commit), or all with --all. It
# needs a configured build/ (make lint sees to that).
set -euo pipefail
cd "$(dirname "$0")/.."

all=${1:-}
failed=0
check() {  # check TITLE COMMAND...
  local title=$1
  shift
  if ! "$@"; then
    echo "lint: $title: failed" >&2
    failed=1
  fi
}

formatted() { git ls-files -z '*.cc' '*.h' '*.cu' '*.cuh' '*.js' | xargs -0 clang-format-14 --dry-run -Werror; }

shell_scripts() {
  local files
  mapfile -t files < <(git ls-files '*.sh' .ci/run)
  shellcheck "${files[@]}"
}

python_files() { git ls-files -z '*.py' | xargs -0 python3 -m py_compile; }

# The commit that the changes are counted from; a lone first commit has none.
base() {
  local main
  main=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -n "$main" ] && [ "$main" != "$(git rev-parse HEAD)" ]; then
    echo "$main"
  else
    git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null
  fi
}

tidy() {
  local files
  if [ "$all" = --all ]; then
    mapfile -t files < <(git ls-files '*.cc')
  else
    mapfile -t files < <(git diff --name-only --diff-filter=d "$(base)" -- '*.cc')
  fi
  [ ${#files[@]} -gt 0 ] || return 0
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build --quiet \
    2> >(grep -vE '^[0-9]+ warnings? ' >&2)
}

check "format (make format repairs it)" formatted
check "include directions" scripts/check_includes.py --headers
check "shell scripts" shell_scripts
check "Python files" python_files
check "clang-tidy" tidy
exit "$failed"
