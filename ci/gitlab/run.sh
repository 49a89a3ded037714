#!/usr/bin/env bash
# Runs a command with a new results folder: run.sh FOLDER COMMAND...
source "$(dirname "$0")/environment.sh"
[ $# -gt 1 ] || fail 2 "use: run.sh FOLDER COMMAND..."
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
FABRICHECK_RESULTS=$(realpath "$folder") exec "$@"
