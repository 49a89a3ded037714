#!/usr/bin/env bash
# Measures several nodes of FABRICHECK_SITE, each separately: every-node.sh
# FABRICHECK_NODES is a number or a list of names: one job over all of them, of FABRICHECK_TIME
# minutes (fabricheck every-node), which then measures what joins them if the site names a fabric;
# or idle, avail or all: a job of each check for each such node (ReFrame's --distribute).
source "$(dirname "$0")/environment.sh"
[ -n "${FABRICHECK_NODES:-}" ] || fail 2 "FABRICHECK_NODES does not say which nodes"
[ "$set" != network ] || fail 2 "FABRICHECK_SET=network is of several nodes together: leave \
FABRICHECK_NODES out, or measure the network after another set of each node"
folder=pipeline/results/every-node
# Removes the results of an earlier try, so that they are not taken for this one's.
rm -rf $folder pipeline/verdict/every-node "$kept/every-node"
mkdir -p $folder
export FABRICHECK_RESULTS=$PWD/$folder

# The options that reach a node, one per line, with variables such as FABRICHECK_RESERVATION.
found=$(configured)
mapfile -t reached < <(python -c '
import json, sys
found = json.load(sys.stdin)
wanted = sys.argv[1].partition(":")[2]
found = [one for one in found if wanted in ("", one["name"])]
for one in found if len(found) == 1 else ():
    print(one["name"], one["scheduler"], *one.get("access", ()), sep="\n")
' "$site" <<< "$found")
[ ${#reached[@]} -gt 1 ] || fail 2 "$site is not one partition: name one, as $site:PARTITION"
partition=${site%%:*}:${reached[0]}
[ "${reached[1]}" != local ] \
  || fail 2 "$partition has no scheduler, so there are no other nodes than the runner's own"
checks=(--system="$partition" -c reframe_checks --tag "$set\$" "${options[@]}")

status=0
case $FABRICHECK_NODES in
  idle | avail | all)
    reframe -r "${checks[@]}" --distribute="$FABRICHECK_NODES" || status=$?
    judged=$folder
    ;;
  *)
    which=--nodelist
    [[ $FABRICHECK_NODES =~ [^0-9] ]] || which=--nodes
    measure=(fabricheck every-node -- "${checks[@]}")
    if [ -n "${SLURM_JOB_ID:-}" ]; then
      # A batch runner of Jacamar has submitted this job, with its SCHEDULER_PARAMETERS.
      [ "${SLURM_JOB_NUM_NODES:-1}" = "$FABRICHECK_NODES" ] || [ $which = --nodelist ] \
        || fail 2 "FABRICHECK_NODES is $FABRICHECK_NODES, and job $SLURM_JOB_ID has \
${SLURM_JOB_NUM_NODES:-1} nodes: --nodes of SCHEDULER_PARAMETERS says how many"
      [ $which = --nodes ] || measure=(fabricheck every-node --nodes "$FABRICHECK_NODES" -- "${checks[@]}")
      "${measure[@]}" || status=$?
    else
      # --no-kill: a node that fails does not end the job of the others.
      salloc --exclusive --no-kill "$which=$FABRICHECK_NODES" "${reached[@]:2}" \
        --time="${FABRICHECK_TIME:-60}" "${measure[@]}" || status=$?
    fi
    judged=$(find "$folder/every-node" -mindepth 1 -maxdepth 1 -type d 2> /dev/null | tail -n 1) || true
    [ -n "$judged" ] || fail 13 "no node was measured: salloc or every-node says why"
    ;;
esac
ci/gitlab/verdict.sh every-node "$judged" || status=$?
exit "$status"
