#!/usr/bin/env bash
# test.sh PRESET [CTEST-OPTION...]: runs the tests that were built, in parallel over the cores.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift

steady=()
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then steady=(setarch -R); fi

exec "${steady[@]}" ctest --preset "$preset" -j "$(nproc)" "$@"
