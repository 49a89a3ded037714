#!/usr/bin/env bash
# Combines the verdicts of a pipeline: summary.sh [NAME...]
# NAME is the name of a verdict (verdict.sh). The default is the child pipelines that generate.sh
# wrote, or every-node if FABRICHECK_NODES is set. Writes pipeline/summary: index.html, and the
# page and the verdict of each. Ends with the worst exit code of the verdicts, 13 without any.
source "$(dirname "$0")/environment.sh"
rm -rf pipeline/summary
mkdir -p pipeline/summary

names=("$@")
if [ $# -eq 0 ] && [ -n "${FABRICHECK_NODES:-}" ]; then
  names=(every-node)
elif [ $# -eq 0 ]; then
  for file in pipeline/children/*.yml; do
    [ -e "$file" ] && names+=("$(basename "$file" .yml)")
  done
fi
[ ${#names[@]} -gt 0 ] || fail 13 "no child pipeline was generated"

worst=0 rows=''
for name in "${names[@]}"; do
  ended=13 said="no verdict of this pipeline in $kept/$name"
  if [ -f "$kept/$name/ended" ]; then
    ended=$(< "$kept/$name/ended")
    said=$(head -n 1 "$kept/$name/verdict.txt")
    cp -r "$kept/$name" pipeline/summary
  fi
  [ -n "$said" ] || said="fabricheck verdict ended with $ended"
  printf '%-24s %3s  %s\n' "$name" "$ended" "$said"
  shown=$name
  if [ -f "pipeline/summary/$name/report/index.html" ]; then
    shown="<a href=\"$name/report/index.html\">$name</a>"
  fi
  rows+="<tr><td>$shown<td>$said</tr>"
  # A node that failed (12) outweighs one of which little is known (13).
  if [ "$ended" -eq 12 ] || [ "$worst" -eq 0 ]; then worst=$ended; fi
done
cat > pipeline/summary/index.html << END
<!doctype html><html lang="en"><meta charset="utf-8"><title>fabricheck</title>
<h1>fabricheck, $(date -u +'%Y-%m-%d %H:%M') UTC</h1>
<table>$rows</table></html>
END
# As long as GitLab keeps artifacts.
find "$every_kept" -mindepth 1 -maxdepth 1 -mtime +28 -exec rm -rf {} + || true
exit "$worst"
