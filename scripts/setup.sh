#!/usr/bin/env bash
# Installs the packages of the given groups of packages.txt that are missing (default: build).
set -euo pipefail

list="$(dirname "$0")/packages.txt"
[ $# -gt 0 ] || set -- build

wanted=()
for group in "$@"; do
  names=$(awk -v group="$group" '$1 == group { print $2 }' "$list")
  if [ -z "$names" ]; then
    echo "setup: no group '$group' in $list (there are: $(awk 'NF == 2 && $1 != "#" { print $1 }' "$list" | sort -u | xargs))" >&2
    exit 2
  fi
  mapfile -t -O "${#wanted[@]}" wanted <<<"$names"
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: not a Debian or Ubuntu system; if the build misses something, install the" >&2
  echo "setup: equivalents of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for name in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages, and neither root nor sudo to install them. Ask for:" >&2
    echo "setup:   apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -y -qq -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1
}
install() { apt install --no-install-recommends "${missing[@]}"; }

echo "setup: installing ${missing[*]}" >&2
# The package index may be absent or stale; it is fetched only then.
if ! install && ! { apt update && install; }; then
  cat "$log" >&2
  echo "setup: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
