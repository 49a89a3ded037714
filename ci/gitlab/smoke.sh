#!/usr/bin/env bash
# Runs the set smoke of FABRICHECK_SITE in one session, and judges it: smoke.sh
source "$(dirname "$0")/environment.sh"
folder=pipeline/results/smoke
status=0
ci/gitlab/run.sh $folder reframe --system="$site" -c reframe_checks -r --tag 'smoke$' \
  "${options[@]}" --report-junit=$folder/junit.xml || status=$?
ci/gitlab/verdict.sh smoke $folder || status=$?
exit "$status"
