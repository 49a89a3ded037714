#!/usr/bin/env bash
# Runs the pipeline on this machine, in a clone, by gitlab-ci-local's shell executor: try.sh [FOLDER]
# Once unchanged, and once without a link of the simulated node: the first run must be green, the
# second red, with the check, the link class and the pair in its JUnit report. FOLDER, which must
# not exist, keeps clones and logs. Needs gitlab-ci-local (npm), rsync, fabricheck on the PATH
# (env.sh) and the programs (make build).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
fail() { # CODE SENTENCE
  echo "try.sh: $2" >&2
  exit "$1"
}
[ $# -lt 2 ] || fail 2 "use: try.sh [FOLDER]"
command -v gitlab-ci-local > /dev/null \
  || fail 3 "gitlab-ci-local is not there: npm install -g gitlab-ci-local"
for tool in rsync fabricheck; do
  command -v $tool > /dev/null || fail 3 "$tool is not on the PATH"
done
for runtime in host sim; do
  [ -x "$root/build/$runtime/bin/stream" ] || fail 3 "there are no programs: make build"
done
folder=$(realpath -m "${1:-$(mktemp -du)}")
mkdir "$folder"
# The clones have settings of their own.
unset RFM_CONFIG_FILES FABRICHECK_RESULTS

# pipeline NAME OPTION...: runs it in a new clone; log is NAME.log.
pipeline() {
  local name=$1 status=0
  shift
  git clone -q "file://$root" "$folder/$name"
  git -C "$folder/$name" remote set-url origin https://gitlab.example.org/group/fabricheck.git
  # What is installed and built here, as a runner's machine has it.
  cat > "$folder/setup.sh" << END
export PATH="$(dirname "$(command -v fabricheck)"):\$PATH"
export FABRICHECK_HOST_PROGRAMS="$root/build/host/bin"
export FABRICHECK_SIM_PROGRAMS="$root/build/sim/bin"
END
  echo "FABRICHECK_SETUP_FILE: $folder/setup.sh" > "$folder/$name/.gitlab-ci-local-variables.yml"
  (cd "$folder/$name" && gitlab-ci-local --force-shell-executor --concurrency 1 \
    --variable CI_PIPELINE_SOURCE=web "$@") > "$folder/$name.log" 2>&1 || status=$?
  # The status of gitlab-ci-local lacks that of child pipelines, their last lines do not.
  passed=$(grep -c '^ *PASS ' "$folder/$name.log") || true
  failed=$(grep '^ *FAIL ' "$folder/$name.log" | sed 's/^ *FAIL *//; s/ *$//; s/^\[.*\] -> //') || true
  echo "try.sh: $name ended with $status; $passed jobs passed, failed: ${failed//$'\n'/, }"
  return "$status"
}

# expect FILE PATTERN: the file must hold it.
expect() {
  grep -qE -- "$2" "$1" || fail 1 "$1 does not hold '$2'"
}
artifacts=.gitlab-ci-local/artifacts

pipeline green || fail 1 "the pipeline is red as it is: see $folder/green.log"
[ -z "$failed" ] || fail 1 "these jobs failed: $failed; see $folder/green.log"
for partition in local:host local:sim-mi250x; do
  # gitlab-ci-local keeps artifacts by the name of the job, each file under its path.
  made=$(find "$folder/green/$artifacts" -type d -path "*/pipeline/verdict/${partition/:/-}")
  for file in report/index.html metrics.txt verdict.json reports/run-0.json; do
    [ -s "$made/$file" ] || fail 1 "the verdict of $partition has no $file among its artifacts"
  done
done
expect "$folder/green/public/index.html" 'local-sim-mi250x/report/index.html'

# One job more that fails than the three checks that see the link: the verdict of each pipeline.
! pipeline red --variable FABRICHECK_SITE=local:sim-mi250x \
  --variable 'FABRICHECK_OPTIONS=-S overlay=config/nodes/overlays/link-0-6-gone.yaml' \
  || fail 1 "the pipeline is green with a link gone: see $folder/red.log"
for job in 'node_topology local:sim-mi250x' 'p2p_engine local:sim-mi250x' \
  'p2p_kernel local:sim-mi250x' 'verdict local:sim-mi250x' verdict; do
  grep -qxF -- "$job" <<< "$failed" || fail 1 "$job did not fail: see $folder/red.log"
done
! grep -q stream_local <<< "$failed" || fail 1 "stream_local failed, which has no link"
junit=$(find "$folder/red/$artifacts" -path '*/p2p_engine/junit.xml')
expect "$junit" 'name="p2p_engine @local:sim-mi250x'
expect "$junit" 'Metric engine_links2_worst: pairs 0-6, 6-0, '
echo "try.sh: $(grep -o 'Metric engine_links2_worst: .*)\.' "$junit")"
[ $# -gt 0 ] || rm -rf "$folder"
