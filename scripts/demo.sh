#!/usr/bin/env bash
# Runs the short plans, draws their plots, and says where everything is.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=$(date +%Y%m%d-%H%M%S)
run="results/demo-$stamp"
build/bin/kvmark run configs/quickstart.yaml configs/codecs.yaml -o "$run"
/usr/bin/python3 plots/plot.py "$run"

echo
echo "records: $run/records.jsonl"
find "$run" \( -name '*.png' -o -name '*.svg' \) -printf 'plot:    %p\n' | sort
