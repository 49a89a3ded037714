#!/usr/bin/env bash
# Judges the results folders of jobs together, or of a job over many nodes: verdict.sh NAME FOLDER...
# Writes pipeline/verdict/NAME with one session of all, its verdicts, its page (report) and its
# values (metrics.txt). Ends as `fabricheck verdict` does, or with 13 if that is good but the page
# or a value is incomplete.
source "$(dirname "$0")/environment.sh"
[ $# -gt 1 ] || fail 2 "use: verdict.sh NAME FOLDER..."
name=${1//:/-}
shift
target=pipeline/verdict/$name
rm -rf "$target" "$kept/$name" "$kept/$name.partial"
mkdir -p pipeline/verdict "$kept"

there=0
for folder in "$@"; do
  if [ -d "$folder" ]; then
    there=$((there + 1))
  else
    echo "verdict.sh: $folder is not there: its job left nothing" >&2
    # Among several its verdict is then that it has no session.
    mkdir -p "$folder"
  fi
done
[ $there -gt 0 ] || fail 13 "no job of $name left results"

# One page needs one session; that of a job over many nodes is of all of them.
page=$1 status=0 whole=()
if [ $# -gt 1 ]; then
  # Of one check each: together they are the set. Another session says what it was asked for.
  whole=(--set "$set")
  fabricheck results join "${whole[@]}" --output "$target" "$@" || status=13
  page=$target
fi
mkdir -p "$target"
fabricheck report "$page" --output "$target/report" || status=13
fabricheck results export "$@" --openmetrics "$target/metrics.txt" || status=13
judged=0
fabricheck verdict "${whole[@]}" --output "$target" "$@" | tee "$target/verdict.txt" || judged=$?
[ "$judged" -eq 0 ] || status=$judged

# Whole or not at all: the summary of the pipeline reads it, and what is published is made of it. The
# results themselves stay artifacts of this job.
cp -r "$target" "$kept/$name.partial"
rm -rf "$kept/$name.partial"/{output,stage,reports}
echo "$status" > "$kept/$name.partial/ended"
mv "$kept/$name.partial" "$kept/$name"
exit "$status"
