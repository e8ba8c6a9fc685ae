#!/usr/bin/env bash
# build_twin.sh [DIR]: builds this tree a second time, from a copy in DIR (build/twin) and with its
# functions in another order, and prints the path of the program. What differs between the two is
# only where things lie, so `kvmark selftest-gate --new` with it shows what that alone does to times.
set -euo pipefail
cd "$(dirname "$0")/.."

twin=${1:-build/twin}
source=$twin/a-source-tree-with-a-longer-path
rm -rf "$source"
mkdir -p "$source"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory "$source"
# Functions by name instead of by the order of the files.
cmake -S "$source" -B "$twin/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVMARK_TESTS=OFF \
  -DKVMARK_MICRO=OFF -DCMAKE_CXX_FLAGS=-ffunction-sections \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--sort-section=name --log-level=WARNING >&2
cmake --build "$twin/build" --target kvmark >&2
echo "$twin/build/bin/kvmark"
