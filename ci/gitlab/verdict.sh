#!/usr/bin/env bash
# Takes results folders of jobs together, or that of a job over many nodes: verdict.sh NAME FOLDER...
# Writes pipeline/verdict/NAME with one session of all, its verdicts, its page (report) and its
# values (metrics.txt). Ends as `fabricheck verdict` does, and with 13 where a folder is not there.
source "$(dirname "$0")/environment.sh"
[ $# -gt 1 ] || fail 2 "use: verdict.sh NAME FOLDER..."
name=${1//:/-}
shift
target=pipeline/verdict/$name
rm -rf "$target" "$kept/$name"
mkdir -p pipeline/verdict "$kept"

there=() status=0
for folder in "$@"; do
  if [ -d "$folder" ]; then
    there+=("$folder")
  else
    echo "verdict.sh: $folder is not there: its job left nothing" >&2
    status=13
  fi
done
[ ${#there[@]} -gt 0 ] || fail 13 "no job of $name left results"

# One page needs one session. A job over many nodes has one a node.
page=${there[0]}
if [ ${#there[@]} -gt 1 ] || [ -f "$page/nodes.json" ]; then
  fabricheck results join --output "$target" "${there[@]}" || status=13
  page=$target
fi
mkdir -p "$target"
fabricheck report "$page" --output "$target/report" || status=13
fabricheck export "${there[@]}" --openmetrics "$target/metrics.txt" || status=13
judged=0
fabricheck verdict --set "$set" --output "$target" "${there[@]}" | tee "$target/verdict.txt" \
  || judged=$?
[ "$judged" -eq 0 ] || status=$judged

# Whole or not at all: the summary of the pipeline reads it.
cp -r "$target" "$kept/$name.partial"
printf '%s\n' "${FABRICHECK_PIPELINE:-${CI_PIPELINE_ID:-}}" "$status" > "$kept/$name.partial/ended"
mv "$kept/$name.partial" "$kept/$name"
exit "$status"
