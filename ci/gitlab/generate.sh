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
own=()
for name in $partitions; do
  partition=${site%%:*}:$name
  [[ $site != *:* || $site = "$partition" ]] || continue
  file=pipeline/children/${partition/:/-}.yml
  reframe --system="$partition" -c reframe_checks --tag "$set\$" "${options[@]}" \
    --ci-generate="$file"
  grep -q "^$partition:$" ci/gitlab/partitions.yml || own+=("$file")
done

# The job `own` starts the pipeline of a site of FABRICHECK_SITES, which partitions.yml does not have.
if [ ${#own[@]} -gt 0 ]; then
  [ -n "${FABRICHECK_SITES:-}" ] \
    || fail 3 "${own[*]} would be started by no job: FABRICHECK_SITES names no folder of sites of your own"
  [ ${#own[@]} -eq 1 ] || fail 2 "$site has several partitions: name one, as $site:PARTITION"
  mkdir pipeline/children/own
  cp "${own[0]}" pipeline/children/own/pipeline.yml
fi
