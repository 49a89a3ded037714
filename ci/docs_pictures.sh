#!/usr/bin/env bash
# Makes the picture of the README: the report of a simulated node without the link 0-6.
# Needs env.sh, the programs of `make build`, and chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
source ./env.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FABRICHECK_RESULTS=$work/results
# Ends with 1, because the checks fail.
reframe --system=local:sim-mi250x --mode=node \
  -r -S overlay="$PWD/config/nodes/overlays/link-0-6-gone.yaml" > "$work/log" || true
fabricheck report > /dev/null
page=$FABRICHECK_RESULTS/reports-html/run-0
chromium --headless --no-sandbox --hide-scrollbars --user-data-dir="$work/chromium" --window-size=1100,940 \
  --screenshot="$PWD/docs/drawings/report.png" "file://$page/index.html" 2> /dev/null
