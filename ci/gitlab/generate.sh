#!/usr/bin/env bash
# Writes a child pipeline for each partition of FABRICHECK_SITE: generate.sh
# ReFrame makes a job of each check of FABRICHECK_SET; pipeline/children/SYSTEM-PARTITION.yml.
source "$(dirname "$0")/environment.sh"
rm -rf pipeline/children
mkdir -p pipeline/children
export FABRICHECK_RESULTS=$PWD/pipeline/results/generate

found=$(configured)
partitions=$(python -c 'import json, sys; print(*(one["name"] for one in json.load(sys.stdin)))' \
  <<< "$found")
for name in $partitions; do
  partition=${site%%:*}:$name
  [[ $site != *:* || $site = "$partition" ]] || continue
  grep -q "^$partition:$" ci/gitlab/partitions.yml \
    || fail 3 "$partition has no job in ci/gitlab/partitions.yml, which would start its pipeline"
  reframe --system="$partition" -c reframe_checks --tag "$set\$" "${options[@]}" \
    --ci-generate="pipeline/children/${partition/:/-}.yml"
done
