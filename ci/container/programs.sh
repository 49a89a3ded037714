#!/usr/bin/env bash
# Writes a folder of scripts, each of which starts a program in a container: programs.sh FOLDER PREFIX... PLACE
#   PREFIX  what starts a command in the container, as apptainer exec --nv fabricheck.sif
#   PLACE   the folder of the programs there, as /opt/bundle/bin
# Each program runs in the folder of its job, which the prefix has to mount at the same path.
set -euo pipefail
fail() {
  echo "programs.sh: $1" >&2
  exit 2
}
[ $# -ge 3 ] || fail "use: programs.sh FOLDER PREFIX... PLACE"
folder=$1
place=${!#}
prefix=("${@:2:$#-2}")
[[ $place = /* ]] || fail "'$place' is no absolute path, and is the folder of the programs in the container"
command -v "${prefix[0]}" > /dev/null || fail "there is no command '${prefix[0]}'"
found=$("${prefix[@]}" ls "$place") || fail "'${prefix[*]}' does not list $place"
[[ $'\n'$found$'\n' = *$'\n'stream$'\n'* ]] || fail "there are no programs in $place of the container"

mkdir -p "$folder"
for program in $found; do
  printf '#!/bin/sh\nexec %s%s "$@"\n' "$(printf '%q ' "${prefix[@]}")" "$place/$program" > "$folder/$program"
  chmod +x "$folder/$program"
done
echo "programs.sh: $(wc -w <<< "$found") programs in $folder"
