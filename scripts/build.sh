#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configures and builds one of CMakePresets.json; quiet when all is well.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift

# The race detector cannot place its shadow memory on kernels that randomize many address bits.
steady=()
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then steady=(setarch -R); fi

cmake --preset "$preset" --log-level=WARNING
"${steady[@]}" cmake --build --preset "$preset" ${1:+--target "$@"}
